from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from trainops.policy.gpu_queue import Holding, Request, plan

T0 = datetime(2026, 11, 30, tzinfo=UTC)
POOL = "NVIDIA_TESLA_T4/us-central1/standard"
OTHER = "NVIDIA_L4/us-central1/standard"


def request(key: str, gpus: int, minute: int = 0, priority: int = 0, pool: str = POOL) -> Request:
    return Request(job_key=key, gpus={pool: gpus}, arrived=T0 + timedelta(minutes=minute), priority=priority)


def test_requests_are_admitted_in_the_order_they_came() -> None:
    made = plan([request("b", 4, 2), request("a", 4, 1), request("c", 4, 3)], [], {POOL: 8})
    assert made.admissions == ("a", "b")
    assert made.reasons["c"] == f"rank 3 of 3: needs 4 GPUs of {POOL}, 0 of 8 are free"


def test_a_small_request_does_not_pass_a_gang_that_waits_for_the_same_pool() -> None:
    made = plan([request("gang", 8, 1), request("small", 1, 2)], [Holding(job_key="x", gpus={POOL: 4})], {POOL: 8})
    assert made.admissions == ()
    assert "gang came first" in made.reasons["small"]


def test_pools_do_not_block_each_other() -> None:
    made = plan([request("gang", 8, 1), request("small", 1, 2, pool=OTHER)], [], {POOL: 4, OTHER: 1})
    assert made.admissions == ("small",)


def test_priority_classes_stand_above_arrival() -> None:
    made = plan([request("old", 8, 1), request("urgent", 8, 2, priority=9)], [], {POOL: 8})
    assert made.admissions == ("urgent",)


def test_a_request_over_several_pools_takes_all_or_nothing() -> None:
    both = Request(job_key="both", gpus={POOL: 4, OTHER: 4}, arrived=T0)
    assert plan([both], [], {POOL: 8, OTHER: 2}).admissions == ()
    assert plan([both], [], {POOL: 8, OTHER: 4}).admissions == ("both",)


REQUESTS = st.lists(
    st.builds(
        request,
        key=st.uuids().map(str),
        gpus=st.integers(1, 9),
        minute=st.integers(0, 99),
        priority=st.integers(0, 2),
        pool=st.sampled_from([POOL, OTHER]),
    ),
    max_size=12,
)


@given(REQUESTS, st.integers(0, 8))
def test_no_quota_is_ever_exceeded_and_every_request_is_answered(requests: list[Request], held: int) -> None:
    quotas = {POOL: 8, OTHER: 4}
    made = plan(requests, [Holding(job_key="held", gpus={POOL: held})], quotas)
    taken = {POOL: held, OTHER: 0}
    for item in requests:
        if item.job_key in made.admissions:
            for pool, count in item.gpus.items():
                taken[pool] += count
    assert all(taken[pool] <= quotas[pool] for pool in quotas)
    assert {*made.admissions, *made.reasons} == {item.job_key for item in requests}
    assert made == plan(list(reversed(requests)), [Holding(job_key="held", gpus={POOL: held})], quotas)
