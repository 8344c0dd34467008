from __future__ import annotations

from typing import Any

import pytest

from trainops.errors import ConfigError
from trainops.jobspec.reading.held_job import HeldJob
from trainops.jobspec.reading.text import read_job

SEND = "ml.projects().jobs().create(body={'jobId': 'j', 'trainingInput': inputs}, parent='projects/p')\n"


def held(text: str) -> HeldJob:
    return read_job(text, "submit.py", str)


def inputs(program: str) -> dict[str, Any]:
    found: dict[str, Any] = held(f"{program}\n{SEND}").fields["trainingInput"]
    return found


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("inputs = {'scaleTier': 'BASIC'}", {"scaleTier": "BASIC"}),
        ("pattern = '\\d'\ninputs = {'scaleTier': 'BASIC'}", {"scaleTier": "BASIC"}),
        ("inputs = dict(scaleTier='BASIC', workerCount=2 * 4)", {"scaleTier": "BASIC", "workerCount": 8}),
        ("r = 'eu'\ninputs = {'region': f'{r}-west{1}'}", {"region": "eu-west1"}),
        (
            "inputs = {'region': '%s-%d' % ('a', 1), 'jobDir': 'gs://{}'.format('b')}",
            {"region": "a-1", "jobDir": "gs://b"},
        ),
        ("import os\ninputs = {'jobDir': os.path.join('gs://b', 'c', 'd')}", {"jobDir": "gs://b/c/d"}),
        ("import os\ninputs = {'region': os.environ.get('R', 'us-east1')}", {"region": "us-east1"}),
        (
            "base = {'scaleTier': 'CUSTOM'}\ninputs = {**base, 'workerCount': 1}",
            {"scaleTier": "CUSTOM", "workerCount": 1},
        ),
        ("more = ['--a']\ninputs = {'args': [*more, '--b'] + ['--c']}", {"args": ["--a", "--b", "--c"]}),
        (
            "inputs = {'scaleTier': 'CUSTOM'}\ninputs['masterType'] = 'standard'",
            {"scaleTier": "CUSTOM", "masterType": "standard"},
        ),
        (
            "inputs = {'masterConfig': {}}\ninputs['masterConfig']['imageUri'] = 'i'",
            {"masterConfig": {"imageUri": "i"}},
        ),
        ("inputs = {'scaleTier': 'BASIC'}\ninputs.update({'region': 'r'})", {"scaleTier": "BASIC", "region": "r"}),
        (
            "inputs = {'args': []}\ninputs['args'].append('--a')\ninputs['args'].extend(['--b'])",
            {"args": ["--a", "--b"]},
        ),
        ("tier = 'BASIC'\nif gpu:\n    tier = 'BASIC'\ninputs = {'scaleTier': tier}", {"scaleTier": "BASIC"}),
    ],
)  # fmt: skip
def test_literals_are_read_and_names_are_put_in_place(program: str, expected: dict[str, Any]) -> None:
    assert inputs(program) == expected


def test_a_name_means_what_it_means_in_its_function() -> None:
    program = "inputs = {'region': 'outer'}\ndef send():\n    inputs = {'region': 'inner'}\n    " + SEND
    assert held(program).fields["trainingInput"] == {"region": "inner"}


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("inputs = {'region': region, 'scaleTier': args.tier}", r"not told: \{region\}, \{args.tier\}"),
        ("inputs = {'region': pick()}", r"not told: \{pick\(\)\}"),
        ("r = 'a'\nif x:\n    r = 'b'\ninputs = {'region': r}", r"not told: \{r\}"),
        ("inputs = {'scaleTier': 'CUSTOM'}\nif n > 1:\n    inputs['workerCount'] = n", "line 3 changes inputs"),
        ("inputs = {'args': []}\nfor a in b:\n    inputs['args'].append(a)", "line 3 changes inputs"),
        ("inputs = {'region': 'r', 'x': 1}\ninputs.pop('x')", "line 2 changes inputs"),
    ],
)
def test_what_only_a_run_tells_is_refused_by_name(program: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        inputs(program)


@pytest.mark.parametrize(
    "program",
    [
        "import os\nos.system('gcloud ai-platform jobs submit training j --region us-east1')",
        "import os\nR = 'us-east1'\nos.system(f'gcloud ml-engine jobs submit training j --region {R}')",
        "import os\nos.system('gcloud ml-engine jobs submit training j --region {}'.format('us-east1'))",
        "import subprocess\nsubprocess.run(['gcloud', 'ai-platform', 'jobs', 'submit', 'training', 'j', '--region',"
        " 'us-east1'])",
        "REGION = {'a': 1}\nREGION = 'us-east1'\n"
        "get_ipython().system('gcloud ai-platform jobs submit training j --region {REGION}')",
        'import sys\n"""Submit it:\n\ngcloud ai-platform jobs submit training j \\\\\n  --region us-east1\n"""',
        "job = {'jobId': 'j', 'trainingInput': {'region': 'us-east1'}}\nsend(job)",
    ],
)
def test_a_command_in_a_text_and_a_whole_job_in_a_dict_are_found(program: str) -> None:
    assert held(program).fields == {"jobId": "j", "trainingInput": {"region": "us-east1"}}


def test_a_bare_input_in_a_snippet_is_found() -> None:
    assert held("training_inputs = {'scaleTier': 'BASIC', 'pythonModule': 'm'}").fields == {
        "scaleTier": "BASIC", "pythonModule": "m",
    }  # fmt: skip


def test_several_jobs_are_named_with_their_lines() -> None:
    with pytest.raises(ConfigError, match=r"2 training jobs stand in it: line 2 \(j\), line 3 \(j\)"):
        held(f"inputs = {{'region': 'r'}}\n{SEND}{SEND}")


def test_a_program_without_a_job_is_refused_with_the_next_step() -> None:
    with pytest.raises(ConfigError, match=r"no training job stands in it.*give the dict that it sends"):
        held("import sys\nprint(sys.argv)")


def test_a_program_of_python_2_is_refused_with_its_line() -> None:
    with pytest.raises(ConfigError, match=r"cannot be read as Python, at line 2: .*give the dict that it sends"):
        held("import x\nprint 'sent'\njob = {'trainingInput': {}}\n")


TASK = "from x import MLEngineTrainingOperator\nMLEngineTrainingOperator(task_id='t', {})"


def task(arguments: str) -> HeldJob:
    return held(TASK.format(arguments))


def test_a_single_text_is_a_list_and_an_empty_one_is_not_given() -> None:
    found = task("package_uris='gs://b/p.whl', training_args='--a', region='', job_dir=None, mode='DRY_RUN', retries=2")
    assert found.fields["trainingInput"] == {"packageUris": ["gs://b/p.whl"], "args": ["--a"]}
    assert (found.name, [note.field for note in found.notes]) == (
        "t",
        ["task_id", "region", "job_dir", "mode", "retries"],
    )


def test_default_args_of_the_dag_count_for_the_job() -> None:
    program = "D = {'region': 'r', 'owner': 'me', 'project_id': 'p'}\ndag = DAG('d', default_args=D)\n"
    assert held(program + TASK.format("scale_tier='BASIC'")).fields == {
        "project": "p", "trainingInput": {"region": "r", "scaleTier": "BASIC"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("scale_teir='BASIC'", "unknown argument; got 'scale_teir'.*did you mean 'scale_tier'"),
        ("**options", "arguments are not told"),
        ("region='{{ var.value.region }}'", r"not told: \{\{ var.value.region \}\}"),
    ],
)
def test_an_argument_that_is_not_known_is_refused(arguments: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        task(arguments)
