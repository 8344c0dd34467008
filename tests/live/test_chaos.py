"""The short form of `make chaos`: every kind of component dies once between two side effects of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.chaos.campaign import Campaign
from tests.chaos.judge import judge
from tests.chaos.plan import BROKEN, some_kills

if TYPE_CHECKING:
    from tests.live.cloud import Cloud

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

SEED = 11
KILLS = 7


@pytest.mark.case("C020")
def test_a_kill_of_any_component_between_two_side_effects_costs_no_second_job_and_no_wrong_verdict(
    cloud: Cloud,
) -> None:
    campaign = Campaign(cloud, "killed", lanes=KILLS, say=print)
    trials = campaign.conduct(some_kills(SEED, KILLS))
    assert {trial.kill.component for trial in trials if trial.killed} == {one.component for one in some_kills(SEED, 7)}
    assert [str(finding) for finding in judge(campaign)] == []
    campaign.close()


def test_the_judge_sees_a_second_job_where_no_intent_was_written(cloud: Cloud) -> None:
    campaign = Campaign(cloud, "broken", lanes=1, say=print)
    campaign.conduct([kill for kill in BROKEN if kill.dag == "chaos_no_intent"])
    assert "duplicate" in {finding.kind for finding in judge(campaign)}
    campaign.close()
