from __future__ import annotations

import pytest
from tests.unit.policy.gpu_queue.cluster import HOUR, KNOBS, NOW, POOL, carried_out, planned, request, running

from trainops.policy.gpu_queue import Request, explain
from trainops.policy.gpu_queue.explain import duration


def told(*requests: Request, quota: int = 8, closed: tuple[str, ...] = ()) -> dict[str, str]:
    quotas = {POOL: quota}
    return explain(planned(*requests, quotas=quotas, closed=closed), requests, quotas, KNOBS, closed=closed)


def test_every_request_has_a_sentence() -> None:
    jobs = [running("runs", 4), running("old", 1, preemptible=False), request("a", 8), request("held", 1, held="ana")]
    assert set(told(*jobs)) == {"runs", "old", "a", "held"}


def test_one_that_waits_is_told_its_rank_what_it_lacks_who_has_that_and_when_it_probably_starts() -> None:
    reason = told(running("long", 6, ran_h=0.2, left_h=10), request("gang", 8, waited_h=30))["gang"]
    assert reason == (
        f"rank 1 of 2: needs 8 x {POOL}, 2 of 8 are free (long holds 6); not run yet, boost 1.0 after waiting 30.0 h "
        "(full at 12.5 days, overdue at 37.5 days); probably starts in 7.5 h (7.1 h to 7.9 h)"
    )


def test_the_outlook_is_less_certain_before_jobs_report() -> None:
    guessed = told(running("x", 8, left_h=1, ran_h=0.1), request("a", 8), request("b", 8), request("c", 8))
    assert "to" in guessed["c"]
    assert guessed["c"].count("probably starts") == 1


def test_one_that_leaves_is_told_for_whom_and_the_other_that_it_gets_them() -> None:
    jobs = [running("long", 8, ran_h=10, left_h=100), request("new", 8)]
    assert told(*jobs)["long"] == f"rank 2 of 2: is asked to leave 8 x {POOL}, for new"
    after = carried_out(jobs, planned(*jobs), NOW)
    assert "as soon as those who were asked have left" in told(*after)["new"]
    assert "was asked to leave" in told(*after)["long"]


def test_one_that_can_never_start_is_told_so() -> None:
    assert "whose quota is 8: it can never start there" in told(request("giant", 9))["giant"]


def test_one_in_a_drained_pool_is_told_so() -> None:
    assert "is drained" in told(request("a", 1), closed=(POOL,))["a"]


def test_one_that_is_held_is_told_by_whom() -> None:
    assert told(request("a", 1, held="ana, until Monday"))["a"] == "held: ana, until Monday"


def test_one_that_starts_past_another_is_told_that_it_may_have_to_go() -> None:
    reasons = told(
        running("half", 4, ran_h=0.1, probe=True),
        request("gang", 8),
        request("small", 1, ran=700.0, remaining=HOUR * 9),
    )
    assert "while requests of a better rank do not fit" in reasons["small"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (5, "5 s"),
        (600, "10 min"),
        (7200, "2.0 h"),
        (10 * 86400, "10.0 days"),
        (float("inf"), "no time that can be told"),
    ],
)
def test_a_time_is_told_in_a_unit_that_fits(seconds: float, words: str) -> None:
    assert duration(seconds) == words
