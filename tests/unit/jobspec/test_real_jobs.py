"""Real jobs of AI Platform become what a careful reader of the references expects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from tests.unit.jobspec.real_jobs import FOLDER, NAMES, REQUESTS, Converted, converted, real_job, request

Convert = Callable[..., Converted]

ACCEPTED = [name for name in NAMES if not real_job(name)["expected"]["refused"]]
REFUSED = [name for name in NAMES if name not in ACCEPTED]
EVERYWHERE = {("defaulted", "scheduling.maxRunningTime")}
"""No job of the collection limits its time."""


@pytest.fixture(scope="module")
def convert(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Convert]:
    """Convert a job of the collection, once: alone, or with the options that complete it."""
    folder = tmp_path_factory.mktemp("real_jobs")

    @cache
    def run(name: str, *, completed: bool) -> Converted:
        return converted(name, real_job(name)["expected"]["options"] if completed else [], folder)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRAINOPS_CONFIGS", str(FOLDER))
        patch.delenv("TRAINOPS_ENVIRONMENT", raising=False)
        yield run


def _is_refused(found: Converted, refused: dict[str, str]) -> None:
    assert (found.code, found.stdout) == (2, "")
    assert len(found.refused) == len(refused), found.stderr
    for key, text in refused.items():
        assert [line for line in found.refused if f": {key}: " in line and text in line], found.stderr


def _pool(spec: dict[str, Any]) -> str:
    machine = spec["machineSpec"]
    gpus = f" + {machine['acceleratorCount']} x {machine['acceleratorType']}" if "acceleratorType" in machine else ""
    return f"{spec['replicaCount']} x {machine['machineType']}{gpus}"


@pytest.mark.parametrize("name", NAMES)
def test_a_job_alone_is_refused_by_the_fields_that_it_lacks(convert: Convert, name: str) -> None:
    refused = real_job(name)["expected"]["alone"]["refused"]
    found = convert(name, completed=False)
    if refused:
        _is_refused(found, refused)
    else:
        assert found.code == 0, found.stderr


@pytest.mark.parametrize("name", REFUSED)
def test_a_job_that_cannot_be_translated_says_why_and_what_to_do(convert: Convert, name: str) -> None:
    _is_refused(convert(name, completed=True), real_job(name)["expected"]["refused"])


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_completed_job_becomes_the_request_on_file(convert: Convert, name: str) -> None:
    found = convert(name, completed=True)
    assert found.code == 0, found.stderr
    wrong = "look at the change, and if it is right run .venv/bin/python tests/unit/jobspec/real_jobs.py"
    assert found.job == request(name), wrong


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_completed_job_has_the_machines_that_are_expected(convert: Convert, name: str) -> None:
    expected = real_job(name)["expected"]
    found = convert(name, completed=True)
    tuning = expected["kind"] == "HyperparameterTuningJob"
    pools = found.job["trialJobSpec" if tuning else "jobSpec"]["workerPoolSpecs"]
    assert [_pool(pool) for pool in pools] == expected["pools"]
    assert found.counts("GPUs") == expected["accelerators"]
    if tuning:
        assert found.counts("machines") == expected["machines"]


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_completed_job_tells_what_changed_and_why(convert: Convert, name: str) -> None:
    notes = real_job(name)["expected"]["notes"]
    rows = convert(name, completed=True).rows
    for note in notes:
        told = [text for verdict, field, text in rows if (verdict, field) == (note["verdict"], note["field"])]
        assert any(note["says"] in text for text in told), (note, rows)
    loud = {(verdict, field) for verdict, field, _ in rows if verdict != "mapped"}
    assert loud - EVERYWHERE == {(note["verdict"], note["field"]) for note in notes if note["verdict"] != "mapped"}


@pytest.mark.parametrize("name", ACCEPTED)
def test_every_field_that_was_given_has_a_row(convert: Convert, name: str) -> None:
    told = {field.split(".")[0] for _, field, _ in convert(name, completed=True).rows}
    assert set(real_job(name)["trainingInput"]) <= told


def test_the_collection_is_whole() -> None:
    assert (len(ACCEPTED), len(REFUSED)) == (16, 6)
    assert sorted(path.stem for path in REQUESTS.iterdir()) == ACCEPTED
    for name in NAMES:
        source = real_job(name)["source"]
        assert source["url"] == f"https://github.com/{source['repo']}/blob/{source['commit']}/{source['path']}"
