"""What Vertex AI refuses is refused before it is sent: the product and the stand-in hold the same rules."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.localcloud.vertex.rules.changes import RESERVATION, RESERVATION_KEY, changed
from tests.unit.jobspec.violations import ANY, FLEX, NETWORK, SPECIFIC, VIOLATIONS, Violation

from localcloud.vertex.errors import ApiError
from localcloud.vertex.machines import disk_types as stand_in_disk_types
from localcloud.vertex.schema import parse_message
from localcloud.vertex.validation import check_custom_job
from trainops import naming
from trainops.errors import ConfigError
from trainops.jobspec.disks import disk_types
from trainops.jobspec.tables.machines import GPU_COUNTS, MACHINE_TYPES
from trainops.jobspec.tables.substitutes import RETIRED_GPUS
from trainops.jobspec.tpus import is_tpu_machine
from trainops.jobspec.training_input import parse_training_input
from trainops.jobspec.translate import Translation, translate

Translated = Callable[..., Translation]
IDS = [f"{one.key[:40]}-{one.at}" for one in VIOLATIONS]


def check(job: dict[str, Any]) -> None:
    """Create a job in the stand-in's eyes."""
    check_custom_job(parse_message("CustomJob", job, "custom_job"))


@pytest.mark.parametrize("violation", VIOLATIONS, ids=IDS)
def test_the_product_refuses_it_and_says_how_to_go_on(translated: Translated, violation: Violation) -> None:
    with pytest.raises(ConfigError) as caught:
        translated(violation.fields, **violation.options)
    error = caught.value
    assert error.key == violation.key
    assert error.problem
    assert error.source == "job.yaml"
    assert error.next_step or error.allowed or "such as" in error.problem
    assert error.value is not None or any(word in error.problem for word in ("missing", "needs"))


@pytest.mark.parametrize("violation", VIOLATIONS, ids=IDS)
def test_the_stand_in_refuses_it_at_its_field(violation: Violation) -> None:
    with pytest.raises(ApiError) as caught:
        check(changed(violation.change))
    assert caught.value.status == 400
    where = {item["field"] for detail in caught.value.details for item in detail["fieldViolations"]}
    assert violation.at in where or f"Field: {violation.at}; Message: " in caught.value.message


@pytest.mark.parametrize("violation", VIOLATIONS, ids=IDS)
def test_the_nearest_job_that_keeps_the_rule_passes_both(translated: Translated, violation: Violation) -> None:
    check(translated(violation.near, **violation.near_options).job)


@pytest.mark.parametrize("machine", MACHINE_TYPES)
def test_product_and_stand_in_know_the_same_boot_disks(machine: str) -> None:
    assert list(disk_types(machine)) == stand_in_disk_types(machine)


def test_room_is_kept_for_the_labels_of_an_attempt(translated: Translated) -> None:
    own = {"run-key": "r", "job-key": "j"}
    most = {f"k{n}": "" for n in range(64 - len(own) - len(naming.ATTEMPT_LABELS))}
    labels = translated({"vertex": {"labels": most}}, labels=own).job["labels"]
    assert len(labels) + len(naming.ATTEMPT_LABELS) == 64
    with pytest.raises(ConfigError, match="this has 62, and Trainops adds 3"):
        translated({"vertex": {"labels": {**most, "one": "more"}}}, labels=own)


def test_labels_and_variables_of_an_attempt_are_not_the_users(translated: Translated) -> None:
    given = {"labels": {"attempt": "mine", "team": "a"}, "env": {naming.CONTROL_VARIABLE: "mine", "A": "b"}}
    found = translated({"vertex": given})
    assert found.job["labels"] == {"team": "a", "user-attempt": "mine"}
    package = found.job["jobSpec"]["workerPoolSpecs"][0]["pythonPackageSpec"]
    assert package["env"] == [{"name": "A", "value": "b"}]
    changed_fields = {note.field: note.text for note in found.notes if note.verdict == "changed"}
    assert "attempt" in changed_fields["vertex.labels"]
    assert naming.CONTROL_VARIABLE in changed_fields["vertex.env"]


def mostly(right: list[Any], wrong: list[Any]) -> st.SearchStrategy[Any]:
    """Draw what Vertex AI takes, and now and then what it may not."""
    return st.sampled_from([*right * (1 + 8 * len(wrong) // len(right)), *wrong])


LETTERS = st.text(st.sampled_from([*string.ascii_lowercase, *"é日ßªс"]), min_size=1, max_size=3)
KEYS = (
    mostly(["a-1", "k" * 64, "ключ", "ª²", "a_"], ["", "k" * 65, "1", "_a", "²", "K", "İ", "ʰ", "a.b", "😀"]) | LETTERS
)
VALUES = mostly(["", "1", "_", "ж" * 64], ["v" * 65, "A", "a b", "a\n"]) | LETTERS
LABELS = st.dictionaries(KEYS, VALUES, max_size=2)
VARIABLES = st.dictionaries(mostly(["A", "_1", "a"], ["1", "A B", "É", "A\n"]), st.text(max_size=3), max_size=2)
DURATIONS = mostly(["3600s", "604800s", "0.5s", "315576000000s"], ["0s", "604800.1s", "315576000000.5s"])
ACCOUNTS = mostly(["a@b", "trainer@p.iam.gserviceaccount.com"], ["a", "a@b@c", "a\n@b"])
FOLDERS = mostly(["gs://b", "gs://b/", "gs://b/x y", "gs://B/x"], ["gs://b/\n", "gs://_", "gs:/b", "gs://b?"])
NETWORKS = mostly([NETWORK], ["projects/1/global/networks/", "projects/p/global/networks/n", f"{NETWORK}\n"])
PACKAGES = mostly(["gs://b/p.whl", "gs://b/p.tar.gz"], ["gs://b/.whl", "gs://b.whl", "gs://b/p.egg", "gs://b/\n.whl"])
RESERVATIONS = mostly(
    [ANY, SPECIFIC, SPECIFIC | {"values": [RESERVATION] * 2}], [ANY | {"key": RESERVATION_KEY}, ANY | {"values": []}]
)
COMPUTERS = [machine for machine in MACHINE_TYPES if not is_tpu_machine(machine)]
"""The stand-in takes no TPUs."""
NAMES = mostly(["n", "é" * 128], ["", "n" * 129])


@st.composite
def pools(draw: st.DrawFn) -> dict[str, Any]:
    """A cluster of up to four pools, whose GPUs fit mostly."""
    fields: dict[str, Any] = {"scaleTier": "CUSTOM"}
    same = draw(st.sampled_from([None, "g2-standard-4", "a3-ultragpu-8g"]))
    for role in ("master", "worker", "parameterServer", "evaluator"):
        machine = same or draw(st.sampled_from(COMPUTERS))
        kinds = [kind for kind in GPU_COUNTS.get(machine, {}) if kind not in RETIRED_GPUS]
        config: dict[str, Any] = {}
        if bool(kinds) and draw(st.booleans()):
            gpu = draw(st.sampled_from(kinds))
            config["acceleratorConfig"] = {"type": gpu, "count": draw(st.sampled_from(GPU_COUNTS[machine][gpu]))}
        if draw(st.integers(0, 3)) == 0:
            kind = draw(mostly([*disk_types(machine)], ["hyperdisk-balanced", "pd-ssd"]))
            config["diskConfig"] = {"bootDiskType": kind, "bootDiskSizeGb": draw(mostly([100, 64_000], [99, 64_001]))}
        fields |= {f"{role}Type": machine, f"{role}Config": config}
        if role != "master":
            fields[f"{role}Count"] = draw(st.integers(0, 2))
    return fields


EXTRAS = st.fixed_dictionaries(
    {},
    optional={
        "strategy": st.sampled_from(["STANDARD", "SPOT", "FLEX_START"]),
        "maxWaitDuration": DURATIONS,
        "disableRetries": st.booleans(),
        "restartJobOnWorkerRestart": st.booleans(),
        "persistentResourceId": st.just("r"),
        "reservationAffinity": RESERVATIONS,
        "network": NETWORKS,
        "reservedIpRanges": st.lists(st.just("r"), max_size=1),
        "serviceAccount": ACCOUNTS,
        "labels": LABELS,
        "env": VARIABLES,
    },
)
JOB = st.fixed_dictionaries(
    {},
    optional={
        "vertex": EXTRAS,
        "job": st.fixed_dictionaries({"labels": LABELS}),
        "scheduling": st.fixed_dictionaries({}, optional={"maxRunningTime": DURATIONS, "maxWaitTime": DURATIONS}),
        "jobDir": FOLDERS,
        "packageUris": st.lists(PACKAGES, min_size=1, max_size=2),
        "args": st.lists(st.text(max_size=3), max_size=2),
    },
)
WHOLE = {
    "region": "us-central1",
    "packageUris": ["gs://my-bucket/trainer.tar.gz"],
    "pythonModule": "trainer.task",
    "runtimeVersion": "2.11",
}


@given(st.one_of(st.just({}), st.just(FLEX), pools()), JOB, NAMES)
@settings(max_examples=300, deadline=None)
def test_what_the_product_accepts_the_stand_in_accepts(cluster: Any, job: Any, name: str) -> None:
    vertex = {**cluster.get("vertex", {}), **job.get("vertex", {})}
    try:
        spec = parse_training_input({**WHOLE, **cluster, **job, "vertex": vertex}, "job")
        found = translate(spec, display_name=name, labels={}, substitute="warn")
    except ConfigError:
        return
    check(found.job)
