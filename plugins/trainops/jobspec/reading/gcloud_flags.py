"""Flags of `gcloud ai-platform jobs submit training`, and the fields of projects.jobs that they set.

Source: the command's reference (all release tracks), and google-cloud-cli 528.0.0, `command_lib/ml_engine`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trainops.jobspec.reading.untold import is_untold

_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s?)?")
_DELIMITER = re.compile(r"\^(.+?)\^", re.DOTALL)
_SECONDS = (86_400, 3600, 60, 1)


@dataclass(frozen=True)
class Flag:
    """One flag.

    :param path: the field, below the body of projects.jobs.
    :param read: makes the field's value of the flag's; raises ValueError, whose text says what is expected.
    """

    path: tuple[str, ...]
    read: Callable[[str], Any] = str


def tier(text: str) -> str:
    """Read a scale tier: `basic-gpu` is BASIC_GPU."""
    if is_untold(text):
        raise ValueError("a name is expected")
    return text.upper().replace("-", "_")


def listed(text: str) -> list[str]:
    """Read values between commas, or between what `^:^` at the beginning names (`gcloud topic escaping`)."""
    named = _DELIMITER.match(text)
    parts = text[named.end() :].split(named[1]) if named else text.split(",")
    return [part.strip() for part in parts if part.strip()]


def pairs(text: str) -> dict[str, str]:
    """Read `key=value` pairs between commas."""
    found = {}
    for part in listed(text):
        name, equals, value = part.partition("=")
        if not equals or name in found:
            raise ValueError("key=value pairs with commas between them are expected, each key once")
        found[name] = value
    return found


def accelerator(text: str) -> dict[str, str]:
    """Read `type=nvidia-tesla-v100,count=2`."""
    found = pairs(text)
    if not set(found) <= {"type", "count"} or "type" not in found:
        raise ValueError("write type=nvidia-tesla-v100,count=2")
    return {"type": tier(found["type"]), "count": found.get("count", "1")}


def duration(text: str) -> str:
    """Read `2h30m` or `3600s` as seconds."""
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        raise ValueError("write a duration such as 3600s or 2h30m")
    return f"{sum(int(part or 0) * unit for part, unit in zip(match.groups(), _SECONDS, strict=True))}s"


def truth(text: str) -> bool:
    """Read true or false."""
    if text.lower() not in {"true", "false"}:
        raise ValueError("true or false is expected")
    return text.lower() == "true"


def _pool_flags() -> dict[str, Flag]:
    found = {}
    for prefix, role in (("master", "master"), ("worker", "worker"), ("parameter-server", "parameterServer")):
        found[f"--{prefix}-machine-type"] = Flag(("trainingInput", f"{role}Type"))
        found[f"--{prefix}-accelerator"] = Flag(("trainingInput", f"{role}Config", "acceleratorConfig"), accelerator)
        found[f"--{prefix}-image-uri"] = Flag(("trainingInput", f"{role}Config", "imageUri"))
        if role != "master":
            found[f"--{prefix}-count"] = Flag(("trainingInput", f"{role}Count"))
    return found


FLAGS = _pool_flags() | {
    "--scale-tier": Flag(("trainingInput", "scaleTier"), tier),
    "--region": Flag(("trainingInput", "region")),
    "--module-name": Flag(("trainingInput", "pythonModule")),
    "--job-dir": Flag(("trainingInput", "jobDir")),
    "--runtime-version": Flag(("trainingInput", "runtimeVersion")),
    "--python-version": Flag(("trainingInput", "pythonVersion")),
    "--service-account": Flag(("trainingInput", "serviceAccount")),
    "--network": Flag(("trainingInput", "network")),
    "--enable-web-access": Flag(("trainingInput", "enableWebAccess"), truth),
    "--use-chief-in-tf-config": Flag(("trainingInput", "useChiefInTfConfig"), truth),
    "--tpu-tf-version": Flag(("trainingInput", "workerConfig", "tpuTfVersion")),
    "--max-running-time": Flag(("trainingInput", "scheduling", "maxRunningTime"), duration),
    "--max-wait-time": Flag(("trainingInput", "scheduling", "maxWaitTime"), duration),
    "--labels": Flag(("labels",), pairs),
    "--project": Flag(("project",)),
}
"""Flags that set one field each."""

SPECIAL = (
    "--config", "--flags-file", "--package-path", "--packages", "--kms-key", "--kms-keyring", "--kms-location",
    "--kms-project",
)  # fmt: skip
"""Flags that set no field by themselves alone."""

NOT_SENT = {
    "--staging-bucket": "not sent: gcloud uploaded packages to it, and here they are in a bucket already",
    **dict.fromkeys(("--async", "--stream-logs"), "not sent: it says what gcloud does after it has sent the job"),
    **dict.fromkeys(
        (
            "--account", "--access-token-file", "--billing-project", "--configuration", "--flatten", "--format",
            "--http-timeout", "--impersonate-service-account", "--log-http", "--quiet", "-q", "--trace-email",
            "--trace-token", "--universe-domain", "--user-output-enabled", "--verbosity",
        ),
        "not sent: it is for gcloud itself",
    ),
}  # fmt: skip
"""Flags that say nothing about the job, and why they are not sent."""

WITHOUT_VALUE = {
    "--async", "--stream-logs", "--enable-web-access", "--log-http", "--quiet", "-q", "--user-output-enabled",
}  # fmt: skip
"""Flags that stand alone, or take their value after `=` only."""

KNOWN = (*FLAGS, *SPECIAL, *NOT_SENT)
"""All flags."""


def full_name(name: str) -> str | None:
    """Return the flag that is written whole or as a beginning which no other flag has; None for no such flag.

    Only whole words of a flag are left out (`--module` for `--module-name`): a slip of the pen is no abbreviation.
    """
    if name in KNOWN:
        return name
    found = [known for known in KNOWN if name.startswith("--") and known.startswith(f"{name}-")]
    return found[0] if len(found) == 1 else None
