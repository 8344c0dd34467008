from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainops.errors import ConfigError
from trainops.hooks.mlengine import MLEngineHook, display_name

IDS = st.text(min_size=1, max_size=300)


@pytest.mark.case("C074")
@given(IDS)
def test_a_display_name_fits_vertex_and_is_the_id_where_that_fits(job_id: str) -> None:
    name = display_name(job_id)
    assert len(name) <= 128
    assert name == job_id or len(job_id) > 128


@given(IDS, IDS, st.text(min_size=120, max_size=200))
def test_different_ids_stay_different(one: str, other: str, head: str) -> None:
    assert (display_name(one) == display_name(other)) == (one == other)
    assert (display_name(head + one) == display_name(head + other)) == (one == other)


def test_ids_that_the_old_rule_made_one_are_two() -> None:
    assert display_name("train-1.2") != display_name("train-1_2")


@pytest.mark.parametrize("body", [{}, {"jobId": ""}, {"trainingInput": {}}])
def test_a_job_without_an_id_is_refused_before_anything_is_asked(body: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match="a job needs an id"):
        MLEngineHook().create_job(job=body)


def test_another_project_than_the_environments_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"project_id: .*'elsewhere'.*local-llm"):
        MLEngineHook().get_job(job_id="j", project_id="elsewhere")
