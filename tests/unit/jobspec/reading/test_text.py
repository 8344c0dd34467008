from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from trainops.errors import ConfigError
from trainops.jobspec.reading.text import parse_fields, read_job
from trainops.jobspec.training_input import parse_training_input

CAMEL = {"scaleTier": "CUSTOM", "masterType": "standard", "workerCount": "9"}
SPELLINGS = {
    "YAML": "trainingInput:\n  scaleTier: CUSTOM\n  masterType: standard\n  workerCount: 9\n",
    "bare YAML": "# a comment\nscaleTier: CUSTOM\nmasterType: standard\nworkerCount: '9'\n",
    "snake_case": "training_input: {scale_tier: CUSTOM, master_type: standard, worker_count: 9}",
    "JSON": '{"scaleTier": "CUSTOM", "masterType": "standard", "workerCount": "9"}',
    "JSON with comments": '# c\n// c\n{"scaleTier": "CUSTOM", /* "x": 1 */ "masterType": "standard", # c\n'
    ' "workerCount": 9, // c\n}',
    "YAML in braces": "{scaleTier: CUSTOM, masterType: 'standard', workerCount: 9,}",
    "gcloud": "gcloud ai-platform jobs submit training job --scale-tier custom --master-machine-type standard "
    "--worker-count 9",
}


@pytest.mark.parametrize("text", SPELLINGS.values(), ids=SPELLINGS)
def test_every_spelling_means_the_same(text: str) -> None:
    held = read_job(text, "job", lambda name: "")
    spec = parse_training_input(held.fields, "job")
    assert spec.model_dump(exclude={"job"}) == parse_training_input(CAMEL, "job").model_dump(exclude={"job"})


def test_what_looks_like_a_comment_in_a_string_stays() -> None:
    held = read_job('{"args": ["gs://b/#1", "a,]", "/* b */", "\\"// c"],}', "job", str)
    assert held.fields == {"args": ["gs://b/#1", "a,]", "/* b */", '"// c']}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (" \n", "is empty"),
        ('{"region": "a", "region": "b"}', "stands twice"),
        ("region: a\nregion: b\n", "stands twice"),
        ('{"a": 1 # c\n "b": 2}', "line 2, column 2"),
        ("a: [", "broken YAML at line"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_place(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        read_job(text, "job", str)


def test_a_command_in_a_comment_of_a_config_is_no_command_line() -> None:
    text = "# gcloud ai-platform jobs submit training x --config this.yaml\nscaleTier: BASIC\n"
    assert read_job(text, "job", str).fields == {"scaleTier": "BASIC"}


@given(st.text(alphabet="abc{}[]\":,'#/*\\$()`|>&; \n-=gcloud\t\x00") | st.text())
@example("gcloud")
@example("gcloud ai-platform jobs submit training --region")
@example("gcloud ai-platform jobs submit training 'x")
@example('{"steps": [{"newState": {"inputs": {"trainingInput": 1}}}]}')
def test_no_text_ends_in_anything_but_a_job_or_a_config_error(text: str) -> None:
    with suppress(ConfigError):
        assert parse_training_input(read_job(text, "job", str).fields, "job").source == "job"


FRAMES = (
    "import x\ninputs = {}\nml.projects().jobs().create(body={{'trainingInput': inputs}})\n",
    "import x\nos.system({!r})\n",
    "MLEngineTrainingOperator({})\n",
    "gcloud ai-platform jobs submit training j --config c <<EOF\n{}\nEOF\n",
    '{{"cells": [{{"cell_type": "code", "source": "{}"}}]}}',
    "```\ngcloud ai-platform jobs submit training {}\n```\n",
    "a:\n\tgcloud ai-platform jobs submit training {}\nB = $(A)\n",
)


@given(st.sampled_from(FRAMES), st.text(alphabet="ab{}[]\":,'#/*\\$()`|>&; \n-=%+.f0!<E\t"))
@example(FRAMES[0], "a['b'] = a")
@example(FRAMES[0], "'%(a)s' % 1")
@example(FRAMES[0], "'{a.b[0]}'.format(a=1)")
@example(FRAMES[2], "**{1: 2}")
def test_no_program_script_or_notebook_ends_in_anything_but_a_job_or_a_config_error(frame: str, text: str) -> None:
    with suppress(ConfigError):
        held = read_job(frame.format(text), "job", lambda name: "")
        assert parse_training_input(held.fields, "job").source == "job"


@pytest.mark.parametrize("text", ["{,}", "[,]", '{"scaleTier": "BASIC",,}'])
def test_a_comma_that_follows_no_value_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="broken JSON"):
        parse_fields(text, "job.json")
