from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from localcloud.vertex import processes

if TYPE_CHECKING:
    from tests.localcloud.vertex.conftest import StandIn

PREBUILT = "us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest"
Job = Callable[..., dict[str, Any]]


def test_a_job_goes_through_its_states_and_succeeds(vertex: StandIn, container_job: Job) -> None:
    name = vertex.create(container_job("print('hello')"))
    job = vertex.wait(name)
    assert job["state"] == "JOB_STATE_SUCCEEDED"
    assert job["createTime"] <= job["startTime"] <= job["endTime"]
    assert "error" not in job
    assert vertex.states(name) == ["QUEUED", "PENDING", "RUNNING", "SUCCEEDED"]
    assert vertex.lines(name) == ["hello"]


@pytest.mark.case("C108")
def test_packages_are_installed_and_the_module_is_run(
    vertex: StandIn, upload: Callable[[str, bytes], str], sdist: bytes, wheel: bytes
) -> None:
    uris = [
        upload("a folder/hello-1.0.tar.gz", sdist),
        upload("greeting-1.0-py3-none-any.whl", wheel),
    ]
    package = {
        "executorImageUri": PREBUILT,
        "packageUris": uris,
        "pythonModule": "hello.task",
        "args": ["to", "you all"],
    }
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "1", "pythonPackageSpec": package}
    name = vertex.create({"displayName": "packages", "jobSpec": {"workerPoolSpecs": [pool, pool]}})
    assert vertex.wait(name, seconds=40)["state"] == "JOB_STATE_SUCCEEDED"
    assert "good morning to you all" in vertex.lines(name)
    installs = [entry for entry in vertex.journal("replica_started", name) if entry["replica"] == "install"]
    assert len(installs) == 1


def test_a_package_that_is_not_there_fails_the_job(vertex: StandIn) -> None:
    package = {"executorImageUri": PREBUILT, "packageUris": ["gs://packages/no.whl"], "pythonModule": "no"}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "pythonPackageSpec": package}
    job = vertex.wait(vertex.create({"displayName": "no", "jobSpec": {"workerPoolSpecs": [pool]}}))
    assert job["state"] == "JOB_STATE_FAILED"
    assert "cannot download gs://packages/no.whl: HTTP 404" in job["error"]["message"]


@pytest.mark.case("C085")
def test_every_replica_gets_its_environment(vertex: StandIn, container_job: Job, storage: str) -> None:
    show = "import os, json, time; print('ENV ' + json.dumps(dict(os.environ))); time.sleep(0.5)"
    job = container_job(show, show, None, show, baseOutputDirectory={"outputUriPrefix": "gs://b/out"})
    env = [{"name": "FIRST", "value": "1"}, {"name": "SECOND", "value": "$(FIRST)2 $$(FIRST) $(AIP_MODEL_DIR)"}]
    job["jobSpec"]["workerPoolSpecs"][1]["containerSpec"]["env"] = env
    name = vertex.create(job)
    assert vertex.wait(name)["state"] == "JOB_STATE_SUCCEEDED"
    worker = json.loads(vertex.lines(name, "workerpool1-0")[0].removeprefix("ENV "))
    cluster = json.loads(worker["CLUSTER_SPEC"])
    assert cluster["task"] == {"type": "workerpool1", "index": 0}
    assert set(cluster["cluster"]) == {"workerpool0", "workerpool1", "workerpool3"}
    assert cluster["job"]["workerPoolSpecs"][2] == {}
    tensorflow = json.loads(worker["TF_CONFIG"])
    assert tensorflow["task"] == {"type": "worker", "index": 0}
    assert tensorflow["cluster"] == {
        "chief": cluster["cluster"]["workerpool0"],
        "worker": cluster["cluster"]["workerpool1"],
    }
    assert worker["SECOND"] == "12 $(FIRST) gs://b/out/model/"
    assert worker["AIP_CHECKPOINT_DIR"] == "gs://b/out/checkpoints/"
    assert worker["AIP_TENSORBOARD_LOG_DIR"] == "gs://b/out/logs/"
    assert worker["CLOUD_ML_PROJECT_ID"] == "100000000001"
    assert worker["STORAGE_EMULATOR_HOST"] == storage
    assert int(worker["OMP_NUM_THREADS"]) >= 1
    assert worker["OMP_WAIT_POLICY"] == "PASSIVE"
    assert "VIRTUAL_ENV" not in worker


def test_one_replica_alone_has_no_tf_config(vertex: StandIn, container_job: Job) -> None:
    name = vertex.create(container_job("import os; print('TF_CONFIG' in os.environ, 'CLUSTER_SPEC' in os.environ)"))
    vertex.wait(name)
    assert vertex.lines(name) == ["False True"]


def test_the_others_are_stopped_when_the_primary_is_done(vertex: StandIn, container_job: Job) -> None:
    name = vertex.create(container_job("print('done')", "import time; time.sleep(60)"))
    assert vertex.wait(name)["state"] == "JOB_STATE_SUCCEEDED"
    ends = {entry["replica"]: entry["exit_code"] for entry in vertex.journal("replica_ended", name)}
    assert ends == {"workerpool0-0": 0, "workerpool1-0": -15}


def test_a_worker_that_ends_well_does_not_end_the_job(vertex: StandIn, container_job: Job) -> None:
    name = vertex.create(container_job("import time; time.sleep(1)", "pass"))
    assert vertex.wait(name)["state"] == "JOB_STATE_SUCCEEDED"


@pytest.mark.parametrize("status", [1, 2])
def test_failed_code_fails_the_job_with_its_last_lines(vertex: StandIn, container_job: Job, status: int) -> None:
    code = f"import sys; print('the reason', file=sys.stderr); sys.exit({status})"
    job = vertex.wait(vertex.create(container_job("import time; time.sleep(30)", code)))
    assert job["state"] == "JOB_STATE_FAILED"
    assert job["error"]["code"] == 3
    text = f"The replica workerpool1-0 exited with a non-zero status of {status}. Termination reason: Error."
    assert job["error"]["message"].startswith(text)
    assert "the reason" in job["error"]["message"]


def test_a_killed_replica_looks_out_of_memory(vertex: StandIn, container_job: Job) -> None:
    name = vertex.create(container_job("import os; os.kill(os.getpid(), 9)"))
    message = vertex.wait(name)["error"]["message"]
    assert message.startswith(
        "The replica workerpool0-0 ran out of memory and exited with a non-zero status of 9(SIGKILL)"
    )


@pytest.mark.parametrize("status", [6, 139])
def test_a_crashed_worker_is_restarted(vertex: StandIn, container_job: Job, status: int, tmp_path: Any) -> None:
    marker = tmp_path / "crashes"
    count = f"f = open({str(marker)!r}, 'a+'); f.write('x'); f.seek(0); starts = len(f.read())"
    code = f"import sys; {count}; sys.exit({status} if starts < 3 else 0)"
    name = vertex.create(container_job(code))
    assert vertex.wait(name)["state"] == "JOB_STATE_SUCCEEDED"
    assert [entry["start"] for entry in vertex.journal("replica_started", name)] == [1, 2, 3]
    assert vertex.states(name).count("RUNNING") == 1


def test_a_worker_that_always_crashes_ends_the_job_after_all_restarts(vertex: StandIn, container_job: Job) -> None:
    name = vertex.create(container_job("import os; os._exit(11)"))
    job = vertex.wait(name, seconds=40)
    assert "non-zero status of 11" in job["error"]["message"]
    assert len(vertex.journal("replica_started", name)) == (1 + 5) * (1 + 3)
    assert vertex.states(name).count("RUNNING") == 1 + 3


def test_no_restart_when_retries_are_disabled(vertex: StandIn, container_job: Job) -> None:
    name = vertex.create(container_job("import os; os.abort()", scheduling={"disableRetries": True}))
    assert "non-zero status of 134" in vertex.wait(name)["error"]["message"]
    assert len(vertex.journal("replica_started", name)) == 1


def test_the_timeout_cancels(vertex: StandIn, container_job: Job) -> None:
    name = vertex.create(container_job("import time; time.sleep(60)", scheduling={"timeout": "1s"}))
    job = vertex.wait(name)
    assert job["state"] == "JOB_STATE_CANCELLED"
    assert "timeout of 1s" in job["error"]["message"]


def test_cancel_sends_sigterm_and_sigkill_after_the_grace(vertex: StandIn, container_job: Job) -> None:
    code = "import signal, time; signal.signal(15, lambda *_: print('asked')); print('up')\nwhile True: time.sleep(0.1)"
    name = vertex.create(container_job(code))
    vertex.wait(name, "RUNNING")
    while not vertex.lines(name):
        time.sleep(0.05)
    assert vertex.post(f"/v1/{name}:cancel", {}).json() == {}
    assert vertex.get(name)["state"] == "JOB_STATE_CANCELLING"
    job = vertex.wait(name)
    assert job["state"] == "JOB_STATE_CANCELLED"
    assert job["error"]["code"] == 1
    assert vertex.lines(name) == ["up", "asked"]
    assert vertex.journal("replica_ended", name)[0]["exit_code"] == -9
    assert vertex.post(f"/v1/{name}:cancel", {}).status_code == 200
    assert vertex.get(name)["state"] == "JOB_STATE_CANCELLED"


def test_what_a_replica_leaves_running_ends_with_it(vertex: StandIn, container_job: Job, tmp_path: Any) -> None:
    pid_file = tmp_path / "pid"
    child = f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    code = f"""import os, subprocess, sys, time
subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True)
while not os.path.exists({str(pid_file)!r}) or not open({str(pid_file)!r}).read(): time.sleep(0.05)
"""
    name = vertex.create(container_job(code))
    assert vertex.wait(name)["state"] == "JOB_STATE_SUCCEEDED"
    import psutil

    assert not psutil.pid_exists(int(pid_file.read_text()))


def test_an_image_without_a_command_fails_with_the_reason(vertex: StandIn, container_job: Job) -> None:
    job = container_job("")
    del job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["command"]
    ended = vertex.wait(vertex.create(job))
    assert ended["state"] == "JOB_STATE_FAILED"
    assert "no container engine" in ended["error"]["message"]


def test_a_program_that_does_not_exist_fails_the_job(vertex: StandIn, container_job: Job) -> None:
    job = container_job("")
    job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["command"] = ["no-such-program"]
    assert "non-zero status of 127" in vertex.wait(vertex.create(job))["error"]["message"]


def test_replicas_run_with_the_trainers_interpreter(vertex: StandIn, container_job: Job) -> None:
    name = vertex.create(container_job("import torch; print(torch.__file__)"))
    vertex.wait(name)
    assert "/.venv-trainer/" in vertex.lines(name)[0]
    assert not sys.prefix.endswith(".venv-trainer")


INSTALL = """
import subprocess, sys
subprocess.run([sys.executable, "-m", "pip", "install", "-q", *sys.argv[1:]], check=True)
import greeting
print("FOUND", greeting.__file__, sys.prefix)
"""


def test_replicas_install_what_only_they_see(
    vertex: StandIn, container_job: Job, wheel: bytes, tmp_path: Path, trainer_python: Path
) -> None:
    file = tmp_path / "greeting-1.0-py3-none-any.whl"
    file.write_bytes(wheel)
    # The job ends with the primary, so it waits until the worker has installed too.
    done = tmp_path / "done"
    wait = f"import os, time\nwhile not os.path.exists({str(done)!r}): time.sleep(0.05)"
    job = container_job(f"{INSTALL}{wait}", f"{INSTALL}open({str(done)!r}, 'w').close()")
    for pool in job["jobSpec"]["workerPoolSpecs"]:
        pool["containerSpec"]["args"].append(str(file))
    name = vertex.create(job)
    assert vertex.wait(name, seconds=60)["state"] == "JOB_STATE_SUCCEEDED"
    found = [vertex.lines(name, f"workerpool{index}-0")[-1].split() for index in range(2)]
    for word, module, prefix in found:
        assert word == "FOUND"
        assert module.startswith(prefix)
    assert found[0][2] != found[1][2]
    seen = subprocess.run([trainer_python, "-c", "import greeting"], capture_output=True, text=True, check=False)
    assert "No module named 'greeting'" in seen.stderr


def test_a_replica_that_is_started_again_begins_with_a_fresh_python(vertex: StandIn, container_job: Job) -> None:
    code = "import sys, os; print(sys.prefix); sys.exit(6 if '/001/' in sys.prefix else 0)"
    name = vertex.create(container_job(code))
    assert vertex.wait(name)["state"] == "JOB_STATE_SUCCEEDED"
    first, second = vertex.lines(name)
    assert first != second


def test_pip_of_a_replica_builds_without_an_index_from_what_the_trainers_environment_holds(
    vertex: StandIn, container_job: Job, sdist: bytes, tmp_path: Path
) -> None:
    (tmp_path / "hello-1.0.tar.gz").write_bytes(sdist)
    job = container_job(INSTALL.replace("greeting", "hello"))
    job["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"].append(str(tmp_path / "hello-1.0.tar.gz"))
    name = vertex.create(job)
    assert vertex.wait(name, seconds=60)["state"] == "JOB_STATE_SUCCEEDED"
    assert "/hello/__init__.py" in vertex.lines(name)[-1]


def test_a_replica_that_has_just_been_started_can_be_killed(tmp_path: Path) -> None:
    folder = tmp_path / "001"
    processes.launch(folder, [sys.executable, "-c", "import time; time.sleep(60)"], {}, tmp_path / "work", grace=1)
    processes.wait_for_group(folder)
    assert processes.kill(folder)
    while processes.observe(folder).kind == "running":
        time.sleep(0.05)
    assert processes.observe(folder).code == -9
