"""`make chaos`: kill every component in every interval of real runs, and let the stand-ins' journals judge.

The exit status is 0 when nothing was found wrong, every pair was killed often enough, and the broken variants were
caught. `--only` makes the kills of one pair again, with the seed that failed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.campaign import Campaign
from tests.chaos.judge import judge
from tests.chaos.plan import BROKEN, Kill, all_kills
from tests.chaos.report import as_json, kills_by_pair, signals, table
from tests.live.cloud import Cloud, running_cloud


def main() -> int:
    """Run a campaign."""
    options = _options()
    kills = [kill for kill in all_kills(options.seed, options.rounds, options.lanes) if options.only in str(kill)]
    with tempfile.TemporaryDirectory(prefix="chaos") as folder, running_cloud(Path(folder)) as cloud:
        broken = [] if options.only else _uncaught(cloud, options)
        return _campaign(cloud, options, kills, broken)


def _campaign(cloud: Cloud, options: argparse.Namespace, kills: list[Kill], broken: list[str]) -> int:
    began = time.monotonic()
    campaign = Campaign(cloud, f"seed{options.seed}", options.lanes, _say, until=began + 60 * options.minutes)
    campaign.conduct(kills)
    findings = judge(campaign)
    wanting = [pair for pair in {kill.pair for kill in kills} if kills_by_pair(campaign)[pair] < options.rounds]
    print("", *table(campaign), "", sep="\n")
    for finding in findings:
        again = f"--seed {options.seed} --only '{finding.trial.kill.component} @ {finding.trial.kill.interval.name}'"
        print(f"{finding}\n    again: python -m tests.chaos {again}")
    made = sum(kills_by_pair(campaign).values())
    took = f"{time.monotonic() - began:.0f} s, seed {options.seed}"
    print(f"{made} of {len(campaign.trials)} runs were hit in their interval, by {signals(campaign)} kills; {took}")
    print(f"{len(findings)} findings; pairs hit less than {options.rounds} times: {wanting or 'none'}")
    print(*broken, sep="\n")
    if options.output:
        options.output.write_text(json.dumps(as_json(campaign, findings, options.seed), indent=1))
    campaign.close()
    return 1 if findings or wanting or any("NOT" in line for line in broken) else 0


def _uncaught(cloud: Cloud, options: argparse.Namespace) -> list[str]:
    """Kill in runs of the broken variants, and say of each whether the judge saw it."""
    campaign = Campaign(cloud, f"broken{options.seed}", len(BROKEN), _say)
    campaign.conduct(BROKEN)
    caught: dict[str, set[str]] = {kill.dag: set() for kill in BROKEN}
    for finding in judge(campaign):
        caught[finding.trial.kill.dag].add(finding.kind)
    campaign.close()
    return [f"broken variant {dag}: {', '.join(sorted(kinds)) or 'NOT caught'}" for dag, kinds in caught.items()]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="decides the order of kills and where runs are stopped")
    parser.add_argument("--rounds", type=int, default=2, help="kills of each pair of component and interval")
    parser.add_argument("--lanes", type=int, default=8, help="runs side by side")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no kill after so long")
    parser.add_argument("--only", default="", help="part of `COMPONENT @ INTERVAL #ROUND`")
    parser.add_argument("--output", type=Path, help="file for the results as JSON")
    return parser.parse_args()


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
