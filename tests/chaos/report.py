"""What a campaign has covered, as a table and as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.chaos.campaign import Campaign
from tests.chaos.components import COMPONENTS
from tests.chaos.intervals import INTERVALS
from tests.chaos.judge import Finding


def kills_by_pair(campaign: Campaign) -> Counter[tuple[str, str]]:
    """How many runs stood in each interval when each component was killed."""
    return Counter(trial.kill.pair for trial in campaign.trials if trial.killed)


def signals(campaign: Campaign) -> int:
    """How many processes were killed: runs that stood in their intervals at the same time share a kill."""
    return len({trial.killed for trial in campaign.trials if trial.killed})


def table(campaign: Campaign) -> list[str]:
    """Intervals down, components across; a pair that was never killed is a dot."""
    counts = kills_by_pair(campaign)
    width = max(len(interval.name) for interval in INTERVALS)
    lines = [" " * width + "".join(f"  {component:>12}" for component in COMPONENTS)]
    for interval in INTERVALS:
        cells = (counts[component, interval.name] or "." for component in COMPONENTS)
        lines.append(f"{interval.name:<{width}}" + "".join(f"  {cell:>12}" for cell in cells))
    return lines


def as_json(campaign: Campaign, findings: list[Finding], seed: int) -> dict[str, Any]:
    """Everything, for machines."""
    return {
        "seed": seed,
        "runs_hit": sum(kills_by_pair(campaign).values()),
        "processes_killed": signals(campaign),
        "runs": len(campaign.trials),
        "findings": [str(finding) for finding in findings],
        "coverage": [
            {"component": component, "interval": interval, "kills": number}
            for (component, interval), number in sorted(kills_by_pair(campaign).items())
        ],
        "trials": [
            {"run": trial.run, "kill": str(trial.kill), "killed": trial.killed, "seconds": round(trial.seconds, 1)}
            for trial in campaign.trials
        ],
    }
