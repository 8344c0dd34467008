"""The short form of `make chaos`: every kind of component dies once between two side effects of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.chaos.campaign import Campaign
from tests.chaos.judge import judge
from tests.chaos.plan import BROKEN, ONE_OF_EACH

if TYPE_CHECKING:
    from tests.live.cloud import Cloud

pytestmark = [pytest.mark.live, pytest.mark.timeout(900)]

STAND_INS = {"gcs", "vertex"}


@pytest.mark.case("C020")
def test_a_kill_of_any_component_between_two_side_effects_costs_no_second_job_and_no_wrong_verdict(
    cloud: Cloud,
) -> None:
    campaign = Campaign(cloud, "killed", lanes=len(ONE_OF_EACH), say=print)
    campaign.conduct([kill for kill in ONE_OF_EACH if kill.component not in STAND_INS])
    # A stand-in that is killed forgets what it was to hold for others.
    trials = campaign.conduct([kill for kill in ONE_OF_EACH if kill.component in STAND_INS])
    assert {trial.kill.component for trial in trials if trial.killed} == {kill.component for kill in ONE_OF_EACH}
    assert [str(finding) for finding in judge(campaign)] == []
    campaign.close()


@pytest.mark.full
def test_the_judge_sees_a_second_job_where_no_intent_was_written(cloud: Cloud) -> None:
    campaign = Campaign(cloud, "broken", lanes=1, say=print)
    campaign.conduct([kill for kill in BROKEN if kill.dag == "chaos_no_intent"])
    assert "duplicate" in {finding.kind for finding in judge(campaign)}
    campaign.close()
