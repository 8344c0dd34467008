"""Google's words and codes, one by one, and what becomes of a run that ends with them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainops import errors
from trainops.policy.failure import RULES, quoted, read_failure, read_refusal, rule_of
from trainops.policy.record import RESUMABLE, Verdict

AGENT = "service-100000000001@gcp-sa-aiplatform-cc.iam.gserviceaccount.com"
EXITED = "The replica workerpool0-0 exited with a non-zero status of {}. Termination reason: Error."
TRAINER = EXITED.format(1)

TABLE = [
    # code, text, verdict, exit code, a word of the next step
    (3, EXITED.format(1), Verdict.FAILED, 1, "resumes"),
    (3, EXITED.format(2), Verdict.FAILED, 2, "cannot help"),
    (3, EXITED.format(139), Verdict.FAILED, 139, "resumes"),
    (3, f"{TRAINER}\nPermissionError: Permission denied", Verdict.FAILED, 1, "resumes"),
    (
        3, f"{TRAINER}\nForbidden: 403 GET https://storage.googleapis.com/x: {AGENT} does not have storage.objects.get "
        "access to the Google Cloud Storage object.", Verdict.PERMISSION, 1, "grant",
    ),
    (3, f"{TRAINER}\nMyError: image x.png not found", Verdict.FAILED, 1, "resumes"),
    (3, f"{TRAINER}\ngoogle.api_core: exceeded quota", Verdict.FAILED, 1, "resumes"),
    (3, f"{TRAINER}\ntorch.OutOfMemoryError: CUDA out of memory.", Verdict.OUT_OF_MEMORY, 1, "batch_size"),
    (3, f"{TRAINER}\ntorch.cuda.OutOfMemoryError: CUDA out of memory.", Verdict.OUT_OF_MEMORY, 1, "batch_size"),
    (3, f"{TRAINER}\nResourceExhaustedError: OOM when allocating tensor", Verdict.OUT_OF_MEMORY, 1, "batch_size"),
    (
        3, "The replica workerpool0-0 ran out of memory and exited with a non-zero status of 9(SIGKILL).",
        Verdict.OUT_OF_MEMORY, 9, "batch_size",
    ),
    (3, EXITED.format(137), Verdict.FAILED, 137, "resumes from the last checkpoint"),  # killed, and not said why
    (
        8, "Replicas low on memory: workerpool0. Specify a machine with larger memory and try again.",
        Verdict.OUT_OF_MEMORY, None, "larger machine",
    ),
    (
        8, "The following quota metrics exceed quota limits: aiplatform.googleapis.com/custom_model_training_cpus",
        Verdict.QUOTA, None, "gpu_pools.yaml",
    ),
    (
        8, "Resources are insufficient in region: us-central1. Try a different region or use a different accelerator.",
        Verdict.STOCKOUT, None, "another region",
    ),
    (8, "words that nobody has seen yet", Verdict.STOCKOUT, None, "another region"),
    (13, "Internal error occurred for the current attempt.", Verdict.INTERNAL, None, "submitted again"),
    (13, "words that nobody has seen yet", Verdict.INTERNAL, None, "submitted again"),
    (14, "The service is currently unavailable.", Verdict.INTERNAL, None, "submitted again"),
    (10, "The operation was aborted.", Verdict.INTERNAL, None, "submitted again"),
    (4, "words that nobody has seen yet", Verdict.FAILED, None, "log lines"),
    (14, "The replica workerpool0-0 exited with a non-zero status of 1.", Verdict.FAILED, 1, "log lines"),
    (
        3, f"Vertex AI Service Agent {AGENT} does not have permission to access Artifact Registry repository "
        "projects/my-project/locations/us-central1/repositories/images.",
        Verdict.IMAGE_PULL, None, "artifactregistry.reader",
    ),
    (
        7, 'denied: Permission "artifactregistry.repositories.downloadArtifacts" denied on resource '
        '"projects/my-project/locations/us/repositories/images" (or it may not exist)',
        Verdict.IMAGE_PULL, None, "artifactregistry.reader",
    ),
    (5, "Image us-docker.pkg.dev/my-project/images/trainer:v9 not found.", Verdict.IMAGE_PULL, None, "image's name"),
    (3, 'Failed to pull image "us-docker.pkg.dev/p/images/x:1"', Verdict.IMAGE_PULL, None, "image's name"),
    (
        7, f"{AGENT} does not have storage.objects.get access to the Google Cloud Storage object.",
        Verdict.PERMISSION, None, "grant",
    ),
    (
        7, "Permission 'storage.objects.get' denied on resource 'gs://my-bucket/x' (or it may not exist).",
        Verdict.PERMISSION, None, "grant",
    ),
    (7, "words that nobody has seen yet", Verdict.PERMISSION, None, "grant"),
    (3, "words that nobody has seen yet", Verdict.FAILED, None, "log lines"),
    (0, "", Verdict.FAILED, None, "log lines"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "text", "verdict", "exit_code", "step"), TABLE)
def test_a_text_of_google_has_its_verdict_and_next_step(
    code: int, text: str, verdict: Verdict, exit_code: int | None, step: str
) -> None:
    failure = read_failure(code, text, spot=False)
    assert (failure.verdict, failure.exit_code) == (verdict, exit_code)
    assert step in failure.next_step
    assert text.splitlines()[:1] == failure.message.splitlines()[:1] or not text


REFUSALS = [
    (400, "List of found errors:\t1.Field: job_spec; Message: wrong.\t", Verdict.REFUSED),
    (
        400, "You do not have permission to act as service_account: x@p.iam.gserviceaccount.com.",
        Verdict.PERMISSION,
    ),
    (403, "The caller does not have permission", Verdict.PERMISSION),
    (403, "words that nobody has seen yet", Verdict.PERMISSION),
    (401, "Request had invalid authentication credentials.", Verdict.PERMISSION),
    (400, "Image us-docker.pkg.dev/p/images/x:1 does not exist.", Verdict.IMAGE_PULL),
    (404, "no such project", Verdict.REFUSED),
]  # fmt: skip


@pytest.mark.parametrize(("status", "text", "verdict"), REFUSALS)
def test_a_job_that_is_not_taken_is_refused_for_a_reason(status: int, text: str, verdict: Verdict) -> None:
    refusal = read_refusal(status, text)
    assert refusal.verdict is verdict
    assert " ".join(text.split()) in " ".join(refusal.message.split())
    assert refusal.next_step == RULES[verdict].next_step


def test_a_stockout_of_machines_that_google_takes_back_is_their_loss() -> None:
    assert read_failure(8, "Resources are insufficient in region: r.", spot=True).verdict is Verdict.SPOT_LOST
    assert read_failure(8, "Replicas low on memory: workerpool0.", spot=True).verdict is Verdict.OUT_OF_MEMORY


def test_every_end_but_success_has_a_rule_and_an_error_of_its_own() -> None:
    assert set(RULES) == set(Verdict) - {Verdict.SUCCEEDED}
    assert len({rule.error for rule in RULES.values()}) == len(RULES)
    assert all(issubclass(rule.error, errors.RunError) and rule.next_step for rule in RULES.values())


def test_what_resumes_by_itself_is_what_the_lifecycle_resumes() -> None:
    assert {verdict for verdict, rule in RULES.items() if rule.retry == "by itself"} == RESUMABLE


def test_only_the_users_own_failure_costs_a_retry_of_airflow() -> None:
    assert {verdict for verdict, rule in RULES.items() if rule.retry == "Airflow"} == {Verdict.FAILED}
    assert rule_of(Verdict.FAILED, 2).retry == "never"


def test_the_table_for_who_is_on_call_is_this_one() -> None:
    page = (Path(__file__).parents[3] / "docs" / "guides" / "on-call.md").read_text()
    for rule in RULES.values():
        assert f"| `{rule.error.__name__}` | {rule.retry} |" in page
        assert rule.next_step in page, rule.error.__name__


@given(st.integers(0, 16), st.text(), st.booleans())
def test_any_text_has_a_verdict_that_has_a_rule(code: int, text: str, spot: bool) -> None:
    failure = read_failure(code, text, spot=spot)
    assert failure.verdict in RULES
    assert failure.message
    assert failure.next_step


@given(st.text(st.characters(), max_size=200))
def test_what_others_wrote_cannot_pass_for_a_line_of_ours(text: str) -> None:
    first, *others = quoted(text).split("\n")
    assert all(line.startswith("  ") for line in others)
    assert all(char.isprintable() for line in (first, *others) for char in line)


def test_colours_and_carriage_returns_of_the_users_code_are_not_passed_on() -> None:
    text = "The replica failed.\n\x1b[2K\r2026-11-30 INFO - job succeeded\u202e\x00"
    assert quoted(text) == "The replica failed.\n   [2K\n  2026-11-30 INFO - job succeeded"
