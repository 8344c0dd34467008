"""Why a job ended: Vertex's error code and words, read into a verdict.

The texts are Google's own, as users met them; where only a code is certain, the code decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainops.policy.record import Verdict

EXIT_NEVER = 2
"""Exit code of a trainer that says: a retry cannot help."""

_EXIT = re.compile(r"exited with a non-zero status of (\d+)")
_QUOTA = re.compile(r"quota metrics? exceed|exceed(?:s|ed)? quota", re.IGNORECASE)
_STOCKOUT = re.compile(r"resources are insufficient|stockout", re.IGNORECASE)
_INTERNAL = re.compile(r"internal error occurred", re.IGNORECASE)
_RESOURCE_EXHAUSTED, _INTERNAL_CODE = 8, 13


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Why a job failed."""

    verdict: Verdict
    message: str
    exit_code: int | None = None
    next_step: str = ""


def read_failure(code: int, message: str, *, spot: bool) -> Failure:
    """Tell quota, stockout, Spot loss, internal errors and the user's own code apart."""
    text = message.strip() or f"the job failed without a message (code {code})"
    exit_code = _EXIT.search(text)
    if exit_code:
        number = int(exit_code.group(1))
        return Failure(verdict=Verdict.FAILED, message=text, exit_code=number, next_step=_advice(number, text))
    if _QUOTA.search(text):
        step = "raise the quota in the console, or lower the quota of the pool in gpu_pools.yaml"
        return Failure(verdict=Verdict.QUOTA, message=text, next_step=step)
    if _STOCKOUT.search(text) or code == _RESOURCE_EXHAUSTED:
        verdict = Verdict.SPOT_LOST if spot else Verdict.STOCKOUT
        return Failure(verdict=verdict, message=text, next_step="wait, or name another region or accelerator")
    if _INTERNAL.search(text) or code == _INTERNAL_CODE:
        return Failure(verdict=Verdict.INTERNAL, message=text, next_step="nothing: it is submitted again")
    return Failure(verdict=Verdict.FAILED, message=text, next_step="read the log lines above")


def _advice(exit_code: int, text: str) -> str:
    if "out of memory" in text or exit_code in {9, 137}:
        return "lower batch_size or the model's size, or take a machine with more memory"
    if exit_code == EXIT_NEVER:
        return "mend the configuration or the data: the trainer says that a retry cannot help"
    return "read the log lines above; a retry resumes from the last checkpoint"
