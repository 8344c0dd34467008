"""The judge of a campaign: the stand-ins' journals, and what Airflow says of its runs; never the product's records."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from tests.chaos.campaign import Campaign, Trial

LIVE = frozenset({"QUEUED", "PENDING", "RUNNING", "CANCELLING", "PAUSED", "UPDATING", "UNSPECIFIED"})
RUN_OF = {"SUCCEEDED": "success", "FAILED": "failed", "CANCELLED": "failed"}
"""What Airflow must say of a run, by the state in which its job ended."""


@dataclass(frozen=True)
class Finding:
    """Something that must never happen."""

    kind: str
    """duplicate, orphan, lost or false verdict"""
    trial: Trial
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.trial.run} ({self.trial.kill}): {self.text}"


def judge(campaign: Campaign) -> list[Finding]:
    """Judge all runs of a campaign that has ended and was swept."""
    jobs = _jobs_by_run(campaign)
    states = _last_states(campaign)
    held = _held_in_queue(campaign)
    findings: list[Finding] = []
    for trial in campaign.trials:
        mine = {name: states[name] for name in jobs[trial.run]}
        findings += _judged(campaign, trial, mine, held)
    return findings


def _judged(campaign: Campaign, trial: Trial, mine: dict[str, str], held: set[str]) -> list[Finding]:
    found = []
    if len(mine) > 1:
        found.append(Finding("duplicate", trial, f"{len(mine)} jobs were created: {mine}"))
    alive = [name for name, state in mine.items() if state in LIVE]
    if alive or any(trial.run in name for name in held):
        found.append(Finding("orphan", trial, f"after housekeeping live {alive}, held {sorted(held)}"))
    if not mine or not trial.ended:
        found.append(Finding("lost", trial, f"jobs {mine}, ended: {trial.ended} {trial.trouble}"))
        return found
    said = campaign.airflow.run_state(trial.kill.dag, trial.run)
    last = list(mine.values())[-1]
    if last != trial.kill.expected or said != RUN_OF.get(last):
        found.append(Finding("false verdict", trial, f"expected {trial.kill.expected}; jobs {mine}, Airflow: {said}"))
    return found


def _jobs_by_run(campaign: Campaign) -> dict[str, list[str]]:
    """Ids of jobs, the oldest first, by the label of their run."""
    found: dict[str, list[str]] = defaultdict(list)
    for job in sorted(campaign.stand_ins.jobs(), key=lambda job: str(job["createTime"])):
        found[job["labels"].get("run-key", "")].append(str(job["name"]).rpartition("/")[2])
    return found


def _last_states(campaign: Campaign) -> dict[str, str]:
    """The last state of every job that the journal tells of."""
    states: dict[str, str] = {}
    for entry in campaign.stand_ins.journal("vertex"):
        if entry["event"] == "job_state":
            states[entry["job"]] = str(entry["state"]).removeprefix("JOB_STATE_")
    return states


def _held_in_queue(campaign: Campaign) -> set[str]:
    """Job keys that hold GPUs or a place, as the objects lie in storage."""
    ledger: Any = campaign.stand_ins.object("queue%2Fledger.json") or {}
    requests = campaign.stand_ins.objects("queue/requests/")
    return {*ledger.get("leases", {}), *(name.rpartition("/")[2] for name in requests)}
