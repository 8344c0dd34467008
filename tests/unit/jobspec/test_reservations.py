from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from trainops.errors import ConfigError
from trainops.jobspec.translate import Translation

Translate = Callable[..., Translation]
NAME = "compute.googleapis.com/reservation-name"


def _job(**affinity: Any) -> dict[str, Any]:
    fields = {"scaleTier": "CUSTOM", "masterType": "g2-standard-4", "workerType": "standard", "workerCount": 1}
    return fields | {"vertex": {"reservationAffinity": affinity}}


@pytest.mark.case("C071")
@pytest.mark.case("C076")
def test_a_reservation_is_for_the_pools_with_accelerators(translated: Translate) -> None:
    pools = translated(_job(reservationAffinityType="ANY_RESERVATION")).job["jobSpec"]["workerPoolSpecs"]
    assert pools[0]["machineSpec"]["reservationAffinity"] == {"reservationAffinityType": "ANY_RESERVATION"}
    assert "reservationAffinity" not in pools[1]["machineSpec"]


def test_a_reservation_is_for_all_pools_when_none_has_accelerators(translated: Translate) -> None:
    vertex = {"reservationAffinity": {"reservationAffinityType": "NO_RESERVATION"}}
    pools = translated({"scaleTier": "STANDARD_1", "vertex": vertex}).job["jobSpec"]["workerPoolSpecs"]
    assert all("reservationAffinity" in pool["machineSpec"] for pool in pools)


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        (_job(reservationAffinityType="SPECIFIC_RESERVATION"), "vertex.reservationAffinity.key"),
        (_job(reservationAffinityType="SPECIFIC_RESERVATION", key=NAME), "vertex.reservationAffinity.values"),
        (
            _job(reservationAffinityType="SPECIFIC_RESERVATION", key=NAME, values=["projects/p/zones/z/r"]),
            "vertex.reservationAffinity.values.0",
        ),
        (_job(reservationAffinityType="NO_RESERVATION", values=["r"]), "vertex.reservationAffinity.values"),
        (_job(reservationAffinityType="ANY_RESERVATION", key=NAME), "vertex.reservationAffinity.key"),
        (_job(reservationAffinityType="SOME"), "vertex.reservationAffinity.reservationAffinityType"),
        (
            {
                "vertex": {
                    "reservationAffinity": {"reservationAffinityType": "ANY_RESERVATION"},
                    "persistentResourceId": "r",
                }
            },
            "vertex.reservationAffinity",
        ),
    ],
)
def test_reservations_that_cannot_be_are_refused(translated: Translate, fields: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        translated(fields)
    assert caught.value.key == key
