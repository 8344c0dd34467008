from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.policy.gpu_queue.cluster import (
    KNOBS,
    NOW,
    OTHER,
    POOL,
    admitted,
    asked_to_leave,
    carried_out,
    planned,
    request,
    running,
    without_the_leaving,
)

from trainops.policy.gpu_queue import Lease


def test_what_is_free_goes_to_whoever_fits() -> None:
    assert admitted(planned(request("a", 4, waited_h=2), request("b", 4, waited_h=1))) == ["a", "b"]


def test_a_gang_gets_all_its_gpus_or_none() -> None:
    made = planned(request("gang", {POOL: 8, OTHER: 2}), quotas={POOL: 8, OTHER: 1})
    assert admitted(made) == []
    assert admitted(planned(request("gang", {POOL: 8, OTHER: 2}), quotas={POOL: 8, OTHER: 2})) == ["gang"]


def test_a_job_that_never_ran_goes_before_one_with_much_left_whatever_it_claims() -> None:
    liar, honest = request("honest", 8, estimate=1e9), request("liar", 8, estimate=1.0)
    assert admitted(planned(liar, honest)) == ["honest"]  # by name alone: the claims say nothing
    made = planned(running("long", 8, ran_h=10, left_h=100), request("new", 8, estimate=1e9))
    assert asked_to_leave(made) == ["long"]
    assert admitted(made) == []


def test_whoever_makes_room_is_followed_by_the_one_it_made_room_for() -> None:
    jobs = [running("long", 8, ran_h=10, left_h=100), request("new", 8)]
    first = planned(*jobs)
    assert first.preemptions[0].makes_room_for == ("new",)
    leaving = carried_out(jobs, first, NOW)
    again = planned(*leaving)
    assert admitted(again) == []
    assert asked_to_leave(again) == []
    after = planned(*without_the_leaving(leaving))
    assert admitted(after) == ["new"]


def test_near_equals_do_not_change_places() -> None:
    made = planned(running("runs", 8, ran_h=2, left_h=10), request("waits", 8, ran=3600.0, remaining=8 * 3600.0))
    assert asked_to_leave(made) == []


@pytest.mark.parametrize(("ran_h", "leaves"), [(0.4, False), (0.6, True)])
def test_a_job_runs_for_half_an_hour_before_another_of_its_class_takes_its_place(ran_h: float, leaves: bool) -> None:
    job = running("long", 8, ran_h=ran_h, left_h=100)
    assert asked_to_leave(planned(job, request("new", 8))) == (["long"] if leaves else [])


def test_a_higher_class_does_not_wait_for_that() -> None:
    made = planned(running("young", 8, ran_h=0.01, left_h=100), request("urgent", 8, priority=100))
    assert asked_to_leave(made) == ["young"]


def test_a_lower_class_never_takes_the_place_of_a_higher_one() -> None:
    made = planned(running("high", 8, ran_h=10, left_h=1000, priority=75), request("normal", 8, waited_h=10_000))
    assert asked_to_leave(made) == []


def test_a_small_job_passes_a_gang_that_does_not_fit_and_gives_way_when_it_does() -> None:
    jobs = [
        running("half", 4, ran_h=0.1, left_h=1, probe=True),
        request("gang", 8),
        request("small", 1, waited_h=0, ran=700.0, remaining=9000.0),
    ]
    made = planned(*jobs)
    (start,) = made.admissions
    assert (start.job_key, start.backfill) == ("small", True)
    later = [replace(item, lease=None) if item.job_key == "half" else item for item in carried_out(jobs, made, NOW)]
    without_half = [item for item in later if item.job_key != "half"]
    assert asked_to_leave(planned(*without_half)) == ["small"]


def test_a_job_that_cannot_save_its_state_is_never_asked() -> None:
    made = planned(running("old", 8, ran_h=10, left_h=1000, preemptible=False), request("urgent", 8, priority=100))
    assert asked_to_leave(made) == []


def test_a_job_that_is_held_waits_and_keeps_nobody_from_starting() -> None:
    made = planned(request("held", 8, waited_h=500, held="ana: until Monday"), request("other", 8))
    assert admitted(made) == ["other"]


def test_a_job_that_a_person_wants_gone_leaves_though_nobody_waits() -> None:
    made = planned(running("gone", 8, evicted="ana: it reads the wrong data"))
    assert [(item.job_key, item.makes_room_for) for item in made.preemptions] == [("gone", ())]


def test_nobody_is_admitted_to_a_pool_that_is_drained_and_who_runs_there_stays() -> None:
    made = planned(running("runs", 4), request("waits", 4), closed=[POOL])
    assert admitted(made) == []
    assert asked_to_leave(made) == []


def test_nobody_is_asked_to_leave_when_a_quota_shrinks_and_nobody_gains() -> None:
    assert asked_to_leave(planned(running("a", 4), running("b", 4), quotas={POOL: 4})) == []


def test_the_first_candidate_that_is_free_is_taken_before_one_for_which_others_must_leave() -> None:
    both = request("flexible", candidates=({POOL: 8}, {OTHER: 8}))
    made = planned(running("long", 8, ran_h=10, left_h=500), both, quotas={POOL: 8, OTHER: 8})
    assert [(item.candidate, dict(item.gpus)) for item in made.admissions] == [(1, {OTHER: 8})]
    assert asked_to_leave(made) == []


def test_candidates_are_taken_in_the_order_of_the_user() -> None:
    both = request("flexible", candidates=({POOL: 8}, {OTHER: 8}))
    assert planned(both, quotas={POOL: 8, OTHER: 8}).admissions[0].candidate == 0


def test_a_request_that_fits_nowhere_keeps_nobody_from_anything() -> None:
    made = planned(request("giant", 9, waited_h=899), request("small", 1))
    assert [(item.job_key, item.backfill) for item in made.admissions] == [("small", False)]


def test_the_overdue_go_first_the_oldest_of_them_first() -> None:
    older = request("older", 8, waited_h=1000, ran=700.0, remaining=1e7)
    old = request("old", 8, waited_h=950, ran=700.0, remaining=1e6)
    assert admitted(planned(request("quick", 8), old, older)) == ["older"]


def test_the_overdue_leave_half_of_the_pool_to_the_others_where_those_want_it() -> None:
    overdue = [request(f"overdue-{number}", 4, waited_h=1000 + number) for number in range(2)]
    assert admitted(planned(*overdue, request("quick", 4))) == ["overdue-1", "quick"]
    assert admitted(planned(*overdue)) == ["overdue-1", "overdue-0"]


@pytest.mark.parametrize(
    ("needs_h", "waited_h", "overdue"), [(1, 11, False), (1, 13, True), (20, 190, False), (20, 210, True)]
)
def test_how_long_is_too_long_depends_on_what_the_job_still_needs(
    needs_h: float, waited_h: float, overdue: bool
) -> None:
    waits = request("waits", 8, waited_h=waited_h + 700 / 3600, ran=700.0, remaining=needs_h * 3600.0)
    made = planned(waits, request("quick", 8))
    assert admitted(made) == (["waits"] if overdue else ["quick"])


def test_one_that_was_preempted_often_stays_where_another_would_have_to_go() -> None:
    newcomer = request("waits", 8, ran=700.0, remaining=10 * 3600.0)
    for preemptions, leaves in [(0, ["runs"]), (5, [])]:
        runs = running("runs", 8, ran_h=2, left_h=40, preemptions=preemptions)
        assert asked_to_leave(planned(runs, newcomer)) == leaves


def test_a_job_without_reports_counts_for_what_its_owner_said_and_never_for_less_than_it_ran() -> None:
    silent = request("silent", 8, ran=5 * 3600.0, estimate=3600.0)
    assert silent.left(KNOBS.default_estimate) == pytest.approx(5 * 3600.0)
    assert request("unknown", 8).left(KNOBS.default_estimate) == pytest.approx(KNOBS.default_estimate)


def test_a_lease_that_is_left_is_nobodys_until_it_is_empty() -> None:
    leaving = replace(running("leaves", 8), lease=Lease(gpus={POOL: 8}, since=NOW - 9999, leaving=True))
    made = planned(leaving, request("next", 8, priority=100))
    assert admitted(made) == []
    assert made.granted["next"] == {POOL: 8}
