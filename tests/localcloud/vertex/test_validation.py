from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.localcloud.vertex.rules import job_rules, machine_rules, program_rules, scheduling_rules
from tests.localcloud.vertex.rules.changes import (
    MACHINE,
    POOLS,
    REQUIRED,
    SCHEDULING,
    SPEC,
    Bad,
    Change,
    Rule,
    changed,
)

from localcloud.vertex.errors import ApiError
from localcloud.vertex.schema import parse_message
from localcloud.vertex.validation import check_custom_job

RULES = (*job_rules.RULES, *machine_rules.RULES, *program_rules.RULES, *scheduling_rules.RULES)
HERE = Path(__file__).parent
FOUND = re.compile(r"\t\d+\.Field: (.*?); Message: (.*?)(?=\t)", re.DOTALL)


def refusals(job: dict[str, Any]) -> list[tuple[str, str]]:
    """Return every field and message of the answer to the creation of a job; none when it is accepted."""
    try:
        check_custom_job(parse_message("CustomJob", job, "custom_job"))
    except ApiError as error:
        return _told(error)
    return []


def _told(error: ApiError) -> list[tuple[str, str]]:
    assert error.status == 400
    if error.details:
        return [(item["field"], item["description"]) for item in error.details[0]["fieldViolations"]]
    assert error.message.startswith("List of found errors:\t1.Field: ")
    assert error.message.endswith("\t")
    return FOUND.findall(error.message)


BAD = [(rule.field, bad) for rule in RULES for bad in rule.bad]
GOOD = [(rule.field, good) for rule in RULES for good in rule.good]


@pytest.mark.parametrize(("rule", "bad"), BAD, ids=[f"{name}-{bad.words[:30]}" for name, bad in BAD])
def test_a_job_against_a_rule_is_refused_at_its_field(rule: str, bad: Bad) -> None:
    found = [text for field, text in refusals(changed(bad.change)) if field == bad.field]
    assert any(bad.words in text for text in found), refusals(changed(bad.change))


@pytest.mark.parametrize(("rule", "good"), GOOD, ids=[name for name, _ in GOOD])
def test_the_nearest_job_that_keeps_a_rule_is_accepted(rule: str, good: Change) -> None:
    assert refusals(changed(good)) == []


@pytest.mark.parametrize("rule", RULES, ids=[rule.field for rule in RULES])
def test_every_rule_is_tested(rule: Rule) -> None:
    assert (rule.bad and rule.good) or rule.elsewhere


@pytest.mark.parametrize("place", sorted({place for rule in RULES for place in rule.elsewhere}))
def test_what_is_tested_elsewhere_is_there(place: str) -> None:
    file, _, name = place.partition("::")
    assert f"def {name}(" in (HERE / file).read_text() if name else (HERE / file).exists()


def test_all_problems_are_told_at_once_and_numbered() -> None:
    job = changed({"displayName": "", f"{POOLS}.0.replicaCount": "2", f"{SCHEDULING}.timeout": "0s"})
    assert [field for field, _ in refusals(job)] == [
        "display_name",
        "job_spec.worker_pool_specs[0].replica_count",
        "job_spec.scheduling.timeout",
    ]
    with pytest.raises(ApiError) as caught:
        check_custom_job(job)
    assert caught.value.message.startswith(
        f"List of found errors:\t1.Field: display_name; Message: {REQUIRED}\t2.Field: "
    )


@pytest.mark.parametrize(("cores", "refused"), [(8, []), (32, ["job_spec.scheduling.strategy"])])
def test_one_tpu_may_be_spot(cores: int, refused: list[str]) -> None:
    tpu = {"machineType": "cloud-tpu", "acceleratorType": "TPU_V3", "acceleratorCount": cores}
    found = refusals(changed({MACHINE: tpu, SCHEDULING: {"strategy": "SPOT"}}))
    # The stand-in refuses every TPU for its machine type.
    assert [field for field, _ in found] == [f"{SPEC}.machine_type", *refused]


def test_the_stand_in_gives_no_web_access() -> None:
    """A job may ask for it; `webAccessUris` of a sent job are output only and are not kept."""
    assert refusals(changed({"jobSpec.enableWebAccess": True, "webAccessUris": {"workerpool0-0": "uri"}})) == []
