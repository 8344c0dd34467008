"""Why a job ended: Vertex's error code and words, read into a verdict; and what each verdict means, as a table.

The texts are Google's own, as users met them; where only a code is certain, the code decides. A text that nothing
here knows is the user's own failure, shown whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from trainops import errors
from trainops.errors import RunError
from trainops.policy.record import Verdict

EXIT_NEVER = 2
"""Exit code of a trainer that says: a retry cannot help."""

Retry = Literal["by itself", "Airflow", "never"]
"""`by itself`: the next attempt follows while the task waits, and costs no retry. `Airflow`: a retry of the task
submits the next attempt, which resumes from the last checkpoint. `never`: the task fails at once."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What a verdict means for the task that waits: the error, the retry and the next step in its message."""

    error: type[RunError]
    retry: Retry
    next_step: str


RULES: dict[Verdict, Rule] = {
    Verdict.FAILED: Rule(
        error=errors.JobFailed, retry="Airflow",
        next_step="read the log lines above; a retry resumes from the last checkpoint",
    ),
    Verdict.OUT_OF_MEMORY: Rule(
        error=errors.OutOfMemory, retry="never",
        next_step="lower batch_size, seq_len or the model's size, or take a larger machine or GPU, and clear the task",
    ),
    Verdict.IMAGE_PULL: Rule(
        error=errors.ImagePullFailed, retry="never",
        next_step="check the image's name; give Vertex AI's service agents roles/artifactregistry.reader on its "
        "repository; then clear the task",
    ),
    Verdict.PERMISSION: Rule(
        error=errors.PermissionMissing, retry="never",
        next_step="grant what the message names (`trainops init` lists the roles of every account), wait for some "
        "minutes until it holds, then clear the task",
    ),
    Verdict.REFUSED: Rule(
        error=errors.JobRefused, retry="never",
        next_step="correct the fields that the message names, then clear the task",
    ),
    Verdict.QUOTA: Rule(
        error=errors.QuotaExceeded, retry="by itself",
        next_step="raise the quota in the console, or lower the quota of the pool in gpu_pools.yaml",
    ),
    Verdict.STOCKOUT: Rule(
        error=errors.Stockout, retry="by itself",
        next_step="wait, or list another region or accelerator in queue.candidates",
    ),
    Verdict.SPOT_LOST: Rule(
        error=errors.SpotLost, retry="by itself",
        next_step="nothing: it resumes from its last checkpoint; if it happens too often, use standard machines",
    ),
    Verdict.PREEMPTED: Rule(
        error=errors.Preempted, retry="by itself", next_step="nothing: it resumes from its last checkpoint",
    ),
    Verdict.INTERNAL: Rule(
        error=errors.InternalFailure, retry="by itself",
        next_step="nothing: it is submitted again; if it goes on, see https://status.cloud.google.com",
    ),
    Verdict.VANISHED: Rule(
        error=errors.JobVanished, retry="by itself", next_step="nothing: it is submitted again",
    ),
    Verdict.CANCELLED: Rule(
        error=errors.JobCancelled, retry="never", next_step="clear the task, to begin anew",
    ),
    Verdict.COST_CAP: Rule(
        error=errors.CostCapReached, retry="never",
        next_step="raise queue.max_usd, or ask for less, then clear the task",
    ),
    Verdict.DEADLINE: Rule(
        error=errors.DeadlinePassed, retry="never",
        next_step="raise max_running_hours or max_waiting_hours, or ask for less, then clear the task",
    ),
}  # fmt: skip
"""Every verdict but success."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a job failed."""

    verdict: Verdict
    message: str
    exit_code: int | None = None
    next_step: str = ""


_EXIT = re.compile(r"exited with a non-zero status of (\d+)")

# https://docs.cloud.google.com/vertex-ai/docs/training/understanding-training-service: "ran out of memory". "Replicas
# low on memory: workerpool0. Specify a machine with larger memory and try again." comes with code 8, as a stockout
# does (public job histories). The last two are what PyTorch and TensorFlow print when a GPU is full.
_MEMORY = re.compile(
    r"ran out[ -]of[ -]memory|low on memory|OutOfMemoryError: |OOM when allocating tensor", re.IGNORECASE
)

# What Cloud Storage answers, and the user's code prints, when the job's account may not use a bucket.
_BUCKET = re.compile(r"does not have storage\.[\w.]+ access to the (?:Google )?Cloud Storage (?:object|bucket)")

# In this order; the first that matches decides.
_TEXTS: tuple[tuple[re.Pattern[str], Verdict], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), verdict)
    for pattern, verdict in (
        # Comes with 429 at creation, in words such as: The following quota metrics exceed quota limits: NAME
        (r"quota metrics? exceed|exceed(?:s|ed)? quota", Verdict.QUOTA),
        # understanding-training-service, as above: "Resources are insufficient in region: ..."
        (r"resources are insufficient|stockout", Verdict.STOCKOUT),
        # "... Service Agent service-N@gcp-sa-aiplatform-cc.iam.gserviceaccount.com does not have permission to access
        # Artifact Registry repository ...": https://docs.cloud.google.com/vertex-ai/docs/general/troubleshooting
        (r"permission to access (?:the )?(?:artifact registry|container registry|image)", Verdict.IMAGE_PULL),
        # Permission "artifactregistry.repositories.downloadArtifacts" denied on resource ... (or it may not exist):
        # https://github.com/terraform-google-modules/terraform-google-kubernetes-engine/issues/1779
        (r"artifactregistry\.repositories\.|storage-api\.gcr\.io", Verdict.IMAGE_PULL),
        # Docker's and Kubernetes' own words: https://github.com/sassoftware/viya4-iac-gcp/issues/109. Which of them
        # Vertex AI passes on is not documented.
        (
            r"pull access denied|manifest (?:unknown|for \S+ not found)|ErrImagePull|ImagePullBackOff",
            Verdict.IMAGE_PULL,
        ),
        (r"(?:failed|unable|error|could not)[^.\n]{0,40}\bpull\w*\b[^.\n]{0,40}\bimage", Verdict.IMAGE_PULL),
        (r"\bimage\b[^\n]{0,300}\b(?:not found|does not exist|could not be pulled)", Verdict.IMAGE_PULL),
        # A 400, not a 403: https://github.com/googleapis/python-aiplatform/issues/1073
        (r"permission to act as service.?account|iam\.serviceaccounts\.actas", Verdict.PERMISSION),
        # Cloud Storage says: ACCOUNT does not have storage.objects.get access to the Google Cloud Storage object.
        # IAM says: Permission 'x.y.z' denied on resource '...' (or it may not exist).
        (r"does not have (?:\S+\.\S+ access|permission)|permission '?\"?[\w.]* ?'?\"?denied", Verdict.PERMISSION),
        (r"internal error (?:occurred|encountered|happened)", Verdict.INTERNAL),
    )
)

_CODES = {
    7: Verdict.PERMISSION, 16: Verdict.PERMISSION, 8: Verdict.STOCKOUT,
    13: Verdict.INTERNAL, 10: Verdict.INTERNAL, 14: Verdict.INTERNAL,
}  # fmt: skip
"""google.rpc.Code of a job's error: PERMISSION_DENIED, UNAUTHENTICATED, RESOURCE_EXHAUSTED; INTERNAL, and what is to be
tried again by its meaning, ABORTED and UNAVAILABLE. Any other code leaves it to the text."""


def read_failure(code: int, message: str, *, spot: bool) -> Failure:
    """Tell why a job failed.

    :param code: google.rpc.Code of the job's error.
    :param message: what the error says; it may hold lines that the user's code printed.
    :param spot: the job ran on machines that Google may take back; losing them reads like a stockout.
    """
    text = quoted(message) or f"the job failed without a message (code {code})"
    exited = _EXIT.search(text)
    if exited:
        return _of_code(int(exited.group(1)), text)
    verdict = Verdict.OUT_OF_MEMORY if _MEMORY.search(text) else _read(text) or _CODES.get(code, Verdict.FAILED)
    if verdict is Verdict.STOCKOUT and spot:
        verdict = Verdict.SPOT_LOST
    return Failure(verdict=verdict, message=text, next_step=RULES[verdict].next_step)


def read_refusal(status: int, message: str) -> Failure:
    """Tell why Vertex AI did not take a job.

    :param status: HTTP status of the answer.
    """
    text = quoted(message)
    verdict = _read(text)
    if verdict not in {Verdict.IMAGE_PULL, Verdict.PERMISSION}:
        verdict = Verdict.PERMISSION if status in {401, 403} else Verdict.REFUSED
    return Failure(verdict=verdict, message=f"Vertex refused the job: {text}", next_step=RULES[verdict].next_step)


def rule_of(verdict: Verdict, exit_code: int | None = None) -> Rule:
    """Return the rule of an end; a trainer may say that a retry cannot help."""
    if verdict is Verdict.FAILED and exit_code == EXIT_NEVER:
        step = "mend the configuration or the data: the trainer says that a retry cannot help; then clear the task"
        return Rule(error=errors.JobFailed, retry="never", next_step=step)
    return RULES[verdict]


def quoted(text: str) -> str:
    """Return a text of others for a log: no control characters, and no line of it looks like one of ours."""
    lines = ("".join(char if char.isprintable() else " " for char in line).rstrip() for line in text.splitlines())
    return "\n  ".join(line for line in lines if line).strip()


def _of_code(exit_code: int, text: str) -> Failure:
    """The user's code ended with this: what else stands in the text, it printed."""
    if exit_code != EXIT_NEVER and _MEMORY.search(text):  # a kill (9, 137) alone may have other reasons
        verdict = Verdict.OUT_OF_MEMORY
    else:
        verdict = Verdict.PERMISSION if _BUCKET.search(text) else Verdict.FAILED
    step = rule_of(verdict, exit_code).next_step
    return Failure(verdict=verdict, message=text, exit_code=exit_code, next_step=step)


def _read(text: str) -> Verdict | None:
    return next((verdict for pattern, verdict in _TEXTS if pattern.search(text)), None)
