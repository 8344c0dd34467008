"""Every command of docs/guides/rehearse-failures.md is run as it stands there."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, get_args

import pytest
from tests.integration.storage_proxy import StorageProxy, storage_proxy
from tests.localcloud.vertex.conftest import ROOT, job_id, wait_for

from localcloud.vertex.faults import KillReplica, SpotLoss, Standing

if TYPE_CHECKING:
    from tests.localcloud.vertex.conftest import StandIn

PAGE = (ROOT / "docs/guides/rehearse-failures.md").read_text(encoding="utf-8")
LINES = re.findall(r"^    (.+)$", PAGE, re.MULTILINE)
PRELUDE = next(line for line in LINES if line.startswith("fault()"))
COMMANDS = [line for line in LINES if line.startswith(("fault $", "curl "))]


@pytest.fixture(scope="module")
def proxy(storage: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StorageProxy]:
    with storage_proxy(storage, tmp_path_factory.mktemp("proxy")) as proxy:
        yield proxy


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_is_taken(
    command: str, vertex: StandIn, proxy: StorageProxy, container_job: Callable[..., dict[str, Any]]
) -> None:
    environment = {"VERTEX": vertex.url, "STORAGE": proxy.url, "PATH": "/usr/bin:/bin"}
    if "$JOB" in command:
        name = vertex.create(container_job("import time; print('up', flush=True); time.sleep(60)"))
        wait_for(lambda: vertex.lines(name), 20)  # a replica that is just starting cannot be struck
        environment["JOB"] = job_id(name)
    script = f"set -e; {PRELUDE}\n{command}"
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=False)
    proxy.behave()
    assert done.returncode == 0, done.stderr
    assert re.search(r'"id"|"struck":true', done.stdout) or not command.startswith("fault"), done.stdout


def test_the_page_has_an_example_of_every_kind() -> None:
    models = [*get_args(Standing), SpotLoss, KillReplica]
    kinds = {kind for model in models for kind in get_args(model.model_fields["kind"].annotation)}
    shown = {kind for command in COMMANDS for kind in re.findall(r'kind\\?": \\?"(\w+)', command)}
    assert shown == kinds
    storage = " ".join(command for command in COMMANDS if "$STORAGE" in command)
    assert all(f'"{does}"' in storage for does in ("status", "hold", "rewrite_calls", "clock_skew"))
