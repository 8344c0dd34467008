from __future__ import annotations

import pytest

from trainops.config.conf import RunConf
from trainops.dag_kit.params import conf_params


def test_every_key_of_the_conf_is_in_the_form_with_a_section_and_an_explanation() -> None:
    params = conf_params()
    assert set(params) == set(RunConf.model_fields)
    for name, param in params.items():
        assert param.schema["section"], name
        assert param.schema["title"], name
        assert "For example" in str(param.description), name


@pytest.mark.case("C061")
def test_every_key_may_be_left_empty_and_every_example_is_accepted() -> None:
    schema = RunConf.model_json_schema()["properties"]
    for name, param in conf_params().items():
        assert param.resolve(None) is None
        for example in schema[name]["examples"]:
            assert param.resolve(example) == example, name
