"""What holds of every plan, whatever is asked."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.policy.gpu_queue.cluster import (
    HOUR,
    KNOBS,
    NOW,
    OTHER,
    POOL,
    carried_out,
    held,
)

from trainops.policy.gpu_queue import Lease, Request, plan
from trainops.policy.gpu_queue.plan import fits

QUOTAS = {POOL: 8, OTHER: 4}
GPUS = st.dictionaries(st.sampled_from([POOL, OTHER]), st.integers(1, 9), min_size=1)


ALL_CLASSES = st.sampled_from([25, 50, 100])
WHATEVER_THE_MACHINE = settings(deadline=None)


@st.composite
def _queues(draw: st.DrawFn) -> list[Request]:
    """Requests and running jobs that together hold no more than the quotas."""
    free, requests = dict(QUOTAS), []
    for number in range(draw(st.integers(0, 9))):
        ran = draw(st.sampled_from([0.0, 300.0, 700.0, 5 * HOUR]))
        made = Request(
            job_key=f"job-{number}",
            candidates=tuple(draw(st.lists(GPUS, min_size=1, max_size=2))),
            arrived=NOW - ran - draw(st.sampled_from([0.0, HOUR, 250 * HOUR, 1000 * HOUR])),
            priority=draw(ALL_CLASSES),
            ran=ran,
            remaining=draw(st.sampled_from([60.0, HOUR, 200 * HOUR])) if ran >= KNOBS.report_after else None,
            preemptions=draw(st.integers(0, 3)),
            preemptible=draw(st.booleans()),
            held=draw(st.sampled_from(["", "", "ana"])),
        )
        gpus = made.candidates[0]
        if ran and fits(gpus, free) and draw(st.booleans()):
            free = {pool: count - gpus.get(pool, 0) for pool, count in free.items()}
            lease = Lease(gpus=gpus, since=NOW - ran, backfill=draw(st.booleans()), leaving=draw(st.booleans()))
            made = replace(made, lease=lease)
        requests.append(made)
    return requests


@WHATEVER_THE_MACHINE
@given(_queues())
def test_never_more_than_the_quota_and_always_whole_gangs(requests: list[Request]) -> None:
    made = plan(requests, QUOTAS, NOW, KNOBS)
    after = carried_out(requests, made, NOW)
    assert all(count <= QUOTAS[pool] for pool, count in held(after).items())
    wanted = {item.job_key: item.candidates for item in requests}
    assert all(item.gpus == wanted[item.job_key][item.candidate] for item in made.admissions)


@WHATEVER_THE_MACHINE
@given(_queues())
def test_the_same_question_has_the_same_answer_in_any_order(requests: list[Request]) -> None:
    assert plan(requests, QUOTAS, NOW, KNOBS) == plan(requests, QUOTAS, NOW, KNOBS)
    turned = plan(reversed(requests), QUOTAS, NOW, KNOBS)
    assert turned.admissions == plan(requests, QUOTAS, NOW, KNOBS).admissions


@given(_queues())
@settings(max_examples=4000, deadline=None)
def test_planning_twice_changes_nothing(requests: list[Request]) -> None:
    first = plan(requests, QUOTAS, NOW, KNOBS)
    again = plan(carried_out(requests, first, NOW), QUOTAS, NOW, KNOBS)
    assert again.admissions == ()
    assert again.preemptions == ()


@WHATEVER_THE_MACHINE
@given(_queues())
def test_nothing_stays_free_that_somebody_could_use_unless_it_is_kept_for_another(
    requests: list[Request],
) -> None:
    made = plan(requests, QUOTAS, NOW, KNOBS)
    after = carried_out(requests, made, NOW)
    promised = [gpus for key, gpus in made.granted.items() if not any(i.job_key == key and i.lease for i in after)]
    free = {pool: QUOTAS[pool] - held(after).get(pool, 0) for pool in QUOTAS}
    if not promised:
        idle = [item for item in after if item.lease is None and not item.held]
        assert not any(fits(gpus, free) for item in idle for gpus in item.candidates)


@WHATEVER_THE_MACHINE
@given(_queues())
def test_who_leaves_leaves_for_somebody_and_may_be_asked(requests: list[Request]) -> None:
    by_key = {item.job_key: item for item in requests}
    for item in plan(requests, QUOTAS, NOW, KNOBS).preemptions:
        assert item.makes_room_for
        assert by_key[item.job_key].preemptible


@WHATEVER_THE_MACHINE
@given(_queues(), st.integers(0, 8))
def test_more_priority_never_makes_a_request_wait_that_would_have_started(requests: list[Request], which: int) -> None:
    if which >= len(requests) or requests[which].lease is not None:
        return
    chosen = requests[which].job_key
    raised = [replace(item, priority=1000) if item.job_key == chosen else item for item in requests]
    if chosen in plan(requests, QUOTAS, NOW, KNOBS).granted:
        assert chosen in plan(raised, QUOTAS, NOW, KNOBS).granted


STREAMS = st.lists(st.integers(1, 8), min_size=1, max_size=12)


@WHATEVER_THE_MACHINE
@given(STREAMS, st.integers(1, 8))
def test_no_stream_of_requests_of_its_class_starves_a_gang(sizes: list[int], size: int) -> None:
    """However many jobs arrive that never reported, a gang with much left runs once it is overdue, or before."""
    gang = Request(job_key="gang", candidates=({POOL: size},), arrived=NOW, ran=700.0, remaining=500 * HOUR)
    now, step = NOW, 50 * HOUR
    while gang.lease is None:
        assert now - NOW <= KNOBS.overdue_after + 2 * step, "the gang starved"
        # A new stream each time: those before have ended.
        jobs = [gang, *(Request(job_key=f"s-{n}", candidates=({POOL: g},), arrived=now) for n, g in enumerate(sizes))]
        jobs = carried_out(jobs, plan(jobs, QUOTAS, now, KNOBS), now)
        gang = next(item for item in jobs if item.job_key == "gang")
        now += step
