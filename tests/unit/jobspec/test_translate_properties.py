"""Rules that hold for every job, valid or broken."""

from __future__ import annotations

import random
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import CustomJob
from google.protobuf import json_format
from hypothesis import given, settings
from tests.unit.jobspec.mutations import Mutation, mutations
from tests.unit.jobspec.random_bodies import FIELD_NAMES, random_job
from tests.unit.jobspec.valid_jobs import ROLES, Job, Wanted, jobs

from localcloud.vertex.schema import parse_message
from localcloud.vertex.validation import check_custom_job
from trainops.errors import ConfigError
from trainops.jobspec.notes import Note
from trainops.jobspec.training_input import TrainingInput, parse_training_input
from trainops.jobspec.translate import Translation, translate
from trainops.jobspec.tuning import translate_tuning

FEW = range(1_500)
ALL = range(1_500, 10_000)
OF_THE_FIELD = {"misspell", "extra", "nested"}
"""Mutations that are wrong in themselves: no other field may be named for them."""


def _translate(fields: Any) -> Translation:
    spec = parse_training_input(fields, "job")
    send = translate if spec.hyperparameters is None else translate_tuning
    return send(spec, display_name="d", labels={}, substitute="warn")


def _outcome(fields: Any) -> Translation | ConfigError:
    try:
        return _translate(fields)
    except ConfigError as error:
        return error


def _is_valid(job: dict[str, Any]) -> None:
    """Fail unless Google's message types and the stand-in for Vertex AI take the job."""
    json_format.ParseDict(job, CustomJob.pb(CustomJob()), ignore_unknown_fields=False)
    check_custom_job(parse_message("CustomJob", job, "custom_job"))


def _pools(found: Translation) -> dict[int, dict[str, Any]]:
    return {index: pool for index, pool in enumerate(found.job["jobSpec"]["workerPoolSpecs"]) if pool}


def _task(pool: dict[str, Any]) -> dict[str, Any]:
    task: dict[str, Any] = pool.get("pythonPackageSpec") or pool["containerSpec"]
    return task


def _explains(note: Note, role: str, wanted: Wanted, kind: str) -> bool:
    assert wanted.accelerator is not None
    fields = {"scaleTier", f"{role}Type", f"{role}Config.acceleratorConfig"}
    return (
        note.field in fields and note.verdict == "changed" and {wanted.accelerator.type, kind} <= {*note.text.split()}
    )


@given(jobs())
@settings(max_examples=60, deadline=None)
def test_a_valid_job_becomes_one_that_vertex_takes(job: Job) -> None:
    _is_valid(_translate(job.fields).job)


@given(jobs())
@settings(max_examples=60, deadline=None)
def test_every_pool_keeps_its_place_and_its_replicas(job: Job) -> None:
    found = _translate(job.fields)
    replicas = {index: int(pool["replicaCount"]) for index, pool in _pools(found).items()}
    assert replicas == {index: wanted.replicas for index, wanted in job.pools.items()}
    assert sum(found.machines.values()) == sum(replicas.values())


@given(jobs())
@settings(max_examples=60, deadline=None)
def test_every_pool_keeps_its_accelerators_or_a_note_names_the_substitute(job: Job) -> None:
    found = _translate(job.fields)
    assert sum(found.accelerators.values()) == sum(wanted.accelerators for wanted in job.pools.values())
    for index, pool in _pools(found).items():
        wanted, machine = job.pools[index], pool["machineSpec"]
        assert machine.get("acceleratorCount", 0) == (wanted.accelerator.count if wanted.accelerator else 0)
        if wanted.accelerator and machine["acceleratorType"] != wanted.accelerator.type:
            assert any(_explains(note, ROLES[index], wanted, machine["acceleratorType"]) for note in found.notes)


@given(jobs())
@settings(max_examples=60, deadline=None)
def test_packages_module_and_arguments_are_the_same_in_every_pool(job: Job) -> None:
    folder = [f"--job-dir={job.fields['jobDir']}"] if "jobDir" in job.fields else []
    for pool in _pools(_translate(job.fields)).values():
        task = _task(pool)
        assert task.get("args", []) == [*job.fields["args"], *folder]
        assert task.get("packageUris") == job.fields.get("packageUris")
        assert task.get("pythonModule") == job.fields.get("pythonModule")


@given(jobs())
@settings(max_examples=40, deadline=None)
def test_a_job_in_snake_case_is_the_same_job(job: Job) -> None:
    assert _translate(_snake_case(job.fields)).job == _translate(job.fields).job


@given(mutations())
@settings(max_examples=600, deadline=None)
def test_a_job_with_one_thing_wrong_is_still_valid_or_refused_by_name(mutation: Mutation) -> None:
    outcome = _outcome(mutation.body)
    if isinstance(outcome, Translation):
        _is_valid(outcome.job)
        return
    assert outcome.source == "job"
    assert _names(outcome, mutation), (outcome, mutation)


@given(mutations(["extra"]))
@settings(max_examples=60, deadline=None)
def test_a_field_that_does_not_exist_is_refused_by_its_whole_path(mutation: Mutation) -> None:
    outcome = _outcome(mutation.body)
    if not _is_free(mutation.path):
        assert isinstance(outcome, ConfigError)
        assert (outcome.problem, outcome.key) == ("unknown key", mutation.path)
        assert outcome.value == mutation.path.rsplit(".", 1)[-1]


@pytest.mark.parametrize("seeds", [FEW, pytest.param(ALL, marks=pytest.mark.full)], ids=["few", "all"])
def test_no_body_whatever_gives_a_traceback(seeds: range) -> None:
    outcomes = [_outcome(random_job(random.Random(seed))) for seed in seeds]
    assert all(str(outcome) for outcome in outcomes)
    refused = sum(isinstance(outcome, ConfigError) for outcome in outcomes)
    assert len(seeds) / 200 < len(outcomes) - refused < refused


def _names(error: ConfigError, mutation: Mutation) -> bool:
    """Whether the error names the field that was changed, one in or around it, or a field that does not go with it."""
    key, path = f"{error.key}.", f"{mutation.path}."
    name = mutation.path.rsplit(".", 1)[-1]
    if key.startswith(path) or path.startswith(key) or error.value == name:
        return bool(error.key or name == "")
    return mutation.kind not in OF_THE_FIELD and error.key.split(".")[0] in FIELD_NAMES


def _is_free(path: str) -> bool:
    """Whether the names at this place are the user's own."""
    return path.startswith(("vertex.labels.", "vertex.env.", "job.labels."))


def _snake_case(value: Any, path: str = "") -> Any:
    names = {field.alias: name for name, field in TrainingInput.model_fields.items()}
    return {names.get(key, key): inner for key, inner in value.items()}
