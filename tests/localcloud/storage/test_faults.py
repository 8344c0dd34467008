import pytest
from pydantic import ValidationError

from localcloud.storage.faults import Fault, Faults


def test_a_fault_hits_as_often_as_it_was_told_and_then_is_forgotten() -> None:
    faults = Faults()
    faults.arm(Fault(status=429, count=2, method="post", path="upload.*ledger"))
    path = "/upload/storage/v1/b/b/o?name=queue/ledger.json"
    hits = [faults.hit("POST", path) is not None for _ in range(3)]
    assert hits == [True, True, False]
    assert faults.pending() == []


def test_a_fault_leaves_other_requests_alone_and_lets_the_first_ones_pass() -> None:
    faults = Faults()
    faults.arm(Fault(skip=1, method="GET"))
    assert faults.hit("POST", "/x") is None
    assert [faults.hit("GET", "/x") is not None for _ in range(3)] == [False, True, False]


MEANINGLESS: list[dict[str, object]] = [
    {"status": 200},
    {"count": 0},
    {"path": "("},
    {"unknown": 1},
    {"hold": -1},
    {"hold": 5, "status": 503},
    {"hold": 5, "rewrite_calls": 2},
    {"rewrite_calls": 1},
    {"rewrite_calls": 2, "stored": True},
    {"clock_skew": 5, "path": "ledger"},
    {"clock_skew": 1e12},
]


@pytest.mark.parametrize("order", MEANINGLESS)
def test_an_order_that_means_nothing_is_refused(order: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Fault.model_validate(order)
