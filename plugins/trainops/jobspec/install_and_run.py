"""Runs in a replica's container: installs a job's packages with pip, then becomes its module.

`python3 -c THIS MODULE PACKAGE_URI... -- ARGUMENT...`, so it needs the standard library alone, and any Python 3.7.
"""

import importlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

MOUNTED = Path("/gcs")
"""Where Vertex AI mounts every bucket that the job's account may read."""


def main(module: str, words: "list[str]") -> None:
    """Install the packages before `--`, then run `module` with the arguments after it; it ends with their code."""
    # The first process of a container ignores SIGTERM unless it asks for it.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    end = words.index("--")
    folder = Path(tempfile.mkdtemp(prefix="packages-"))
    files = [_fetched(uri, folder / str(number)) for number, uri in enumerate(words[:end])]
    _pip(*files)
    wheels = [file for file in files if file.endswith(".whl")]
    if wheels:
        # An image may hold another package of the same version, which pip would leave in the wheel's place.
        _pip("--force-reinstall", "--no-deps", *wheels)
    sys.stdout.flush()
    # No process stays between: SIGTERM reaches the module, and its exit code is the container's.
    os.execv(sys.executable, [sys.executable, "-m", module, *words[end + 1 :]])


def _fetched(uri: str, folder: Path) -> str:
    bucket, _, name = uri[len("gs://") :].partition("/")
    mounted = MOUNTED / bucket / name
    if mounted.exists():
        return str(mounted)
    folder.mkdir()
    file = folder / name.rpartition("/")[2]
    try:
        storage = importlib.import_module("google.cloud.storage")
        storage.Client().bucket(bucket).blob(name).download_to_filename(str(file))
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        sys.exit(f"ERROR: cannot fetch {uri}: {mounted} is not there; {type(error).__name__}: {reason}")
    return str(file)


def _pip(*words: str) -> None:
    options = ["--disable-pip-version-check", "--no-input"]
    # The Python of an image belongs to the image alone, whatever its distribution says of it.
    environment = {**os.environ, "PIP_BREAK_SYSTEM_PACKAGES": "1", "PIP_ROOT_USER_ACTION": "ignore"}
    code = subprocess.call([sys.executable, "-m", "pip", *options, "install", *words], env=environment)
    if code:
        sys.exit(code if code > 0 else 128 - code)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
