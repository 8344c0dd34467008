"""The program that a container installs packages with, run as the command of a container runs it."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import venv
import zipfile
from pathlib import Path

import pytest

from trainops.jobspec import install_and_run, installation

URI = "gs://my-bucket/wheels/greeting-1.0-py3-none-any.whl"
MODULE = "import sys; print(TEXT, *sys.argv[1:], flush=True); sys.exit(7)"


def _wheel(text: str, module: str = MODULE) -> bytes:
    """A wheel `greeting-1.0` whose module says `text` and its arguments."""
    info = "greeting-1.0.dist-info"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("greeting.py", f"TEXT = {text!r}\n{module}\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", f"greeting.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return data.getvalue()


class Container:
    """A Python of its own, and a folder in place of the mounted buckets."""

    def __init__(self, folder: Path) -> None:
        self.buckets = folder / "gcs"
        venv.EnvBuilder(symlinks=True, with_pip=True).create(folder / "python")
        self.python = folder / "python" / "bin" / "python3"

    def put(self, uri: str, data: bytes) -> None:
        file = self.buckets / uri.removeprefix("gs://")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    def start(self, *words: str) -> subprocess.Popen[str]:
        program = installation.program().replace('Path("/gcs")', f"Path({str(self.buckets)!r})")
        environment = {"PATH": os.defpath, "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
        return subprocess.Popen(
            [self.python, "-c", program, *words],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, *words: str) -> tuple[int, str, str]:
        process = self.start(*words)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Container:
    return Container(tmp_path_factory.mktemp("container"))


def test_packages_are_installed_and_the_module_gets_the_arguments_and_gives_the_code(container: Container) -> None:
    container.put(URI, _wheel("hello"))
    code, out, err = container.run("greeting", URI, "--", "--a", "b c", "--")
    assert (code, out.splitlines()[-1]) == (7, "hello --a b c --"), err


def test_a_wheel_goes_before_another_of_the_same_version_in_the_image(container: Container) -> None:
    for text in ("old", "new"):
        container.put(URI, _wheel(text))
        _, out, _ = container.run("greeting", URI, "--")
        assert out.splitlines()[-1] == text


def test_a_package_that_is_nowhere_is_told_in_one_line(container: Container) -> None:
    uri = "gs://my-bucket/no.whl"
    code, out, err = container.run("greeting", uri, "--")
    assert (code, out) == (1, "")
    assert err.splitlines() == [err.strip()]
    assert err.startswith(f"ERROR: cannot fetch {uri}: ")


def test_the_code_of_pip_is_handed_on(container: Container) -> None:
    container.put("gs://my-bucket/broken-1.0-py3-none-any.whl", b"no archive")
    code, _, err = container.run("greeting", "gs://my-bucket/broken-1.0-py3-none-any.whl", "--")
    assert code == 1
    assert "broken-1.0-py3-none-any.whl" in err


def test_the_module_takes_the_place_of_the_program_so_signals_reach_it(container: Container) -> None:
    module = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n"
        "print('ready', os.getpid(), flush=True)\ntime.sleep(60)"
    )
    container.put(URI, _wheel("", module))
    process = container.start("greeting", URI, "--")
    assert process.stdout is not None
    assert process.stderr is not None
    ready = next(line for line in process.stdout if line.startswith("ready"))
    assert ready.split() == ["ready", str(process.pid)]
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 5
    process.stdout.close()
    process.stderr.close()


def test_the_text_holds_nothing_that_vertex_would_expand() -> None:
    assert "$" not in installation.program()
    assert installation.program() == Path(install_and_run.__file__).read_text(encoding="utf-8")
