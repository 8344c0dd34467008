"""What Vertex makes of an exit code, and the texts that it tells of a job's end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

CANCELLED_CODE, INVALID_ARGUMENT_CODE, PERMISSION_DENIED_CODE, RESOURCE_EXHAUSTED_CODE, INTERNAL_CODE = 1, 3, 7, 8, 13

WORKER_RESTARTS = 5
JOB_RESTARTS = 3
STOCKOUT_RESTARTS = 3
SPOT_RESTARTS = 6
INTERNAL_RESTARTS = 2
_RETRIED = frozenset({6, 134, 11, 139})


def container_code(code: int) -> int:
    """Return the exit code that a container shows: 128 and the number for a signal (negative here)."""
    return 128 - code if code < 0 else code


def is_retried(code: int) -> bool:
    """Return whether the exit is taken for a crash that may pass."""
    return container_code(code) in _RETRIED


def replica_failed(replica: str, code: int, lines: Sequence[str], logs_url: str) -> dict[str, Any]:
    """Return the job's error after the user's code failed."""
    if container_code(code) == 137:
        text = f"The replica {replica} ran out of memory and exited with a non-zero status of 9(SIGKILL)."
    else:
        status = container_code(code)
        text = f"The replica {replica} exited with a non-zero status of {status}. Termination reason: Error."
    tail = "".join(f"\n{line}" for line in lines)
    more = f"\nTo find out more about why your job exited please check the logs: {logs_url}"
    return {"code": INVALID_ARGUMENT_CODE, "message": text + tail + more}


def stockout(region: str) -> dict[str, Any]:
    """Return the job's error when machines were not to be had, or were taken away too often."""
    text = f"Resources are insufficient in region: {region}. Try a different region or use a different accelerator."
    return {"code": RESOURCE_EXHAUSTED_CODE, "message": text}


def internal_error() -> dict[str, Any]:
    """Return the job's error after the service lost its replicas again and again."""
    return {"code": INTERNAL_CODE, "message": "Internal error occurred for the current attempt."}


def image_pull(repository: str, project_number: str) -> dict[str, Any]:
    """Return the job's error when the service agent may not read the image, in the words of Google's documentation.

    https://docs.cloud.google.com/vertex-ai/docs/general/troubleshooting (Neural Architecture Search); the code is ours.
    """
    account = f"service-{project_number}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com"
    text = f"Vertex AI Service Agent {account} does not have permission to access Artifact Registry repository "
    return {"code": INVALID_ARGUMENT_CODE, "message": f"{text}{repository}."}


def permission(account: str, uri: str) -> dict[str, Any]:
    """Return the job's error when its account may not read an object, in Cloud Storage's words; the code is ours."""
    text = f"{account} does not have storage.objects.get access to the Google Cloud Storage object {uri}."
    return {"code": PERMISSION_DENIED_CODE, "message": text}


def cancelled(text: str = "CANCELED") -> dict[str, Any]:
    """Return the job's error after a cancel."""
    return {"code": CANCELLED_CODE, "message": text}


def cannot_run_image(image: str) -> dict[str, Any]:
    """Return the job's error when only an image says what to run."""
    text = (
        f'The image "{image}" cannot run here: the local stand-in for Vertex AI has no container engine. It runs '
        "containerSpec.command with containerSpec.args, or a pythonPackageSpec, as a process; set one of them."
    )
    return {"code": INVALID_ARGUMENT_CODE, "message": text}
