"""Gives a replica a Python of its own, as a container has one, then becomes the replica's command.

It is a virtual environment over the trainer's: what the trainer's environment holds is seen, and pip installs into the
replica's own folder, so that replicas neither change what they share nor wait for each other. Run as a file by the
trainer's interpreter, so it imports the standard library only.
"""

import os
import site
import sys
import venv
from pathlib import Path


def main(folder: Path, command: list[str]) -> None:
    """Make the environment in `folder` and become `command` in it; exits with 127 when there is no such program."""
    venv.EnvBuilder(symlinks=True).create(folder)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    shared = folder / "lib" / version / "site-packages" / "shared.pth"
    # addsitedir reads the .pth files of the shared environment too.
    lines = [f"import site; site.addsitedir({path!r})" for path in site.getsitepackages()]
    shared.write_text("\n".join(lines) + "\n", encoding="utf-8")
    os.environ["PATH"] = os.pathsep.join([str(folder / "bin"), os.environ.get("PATH", os.defpath)])
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(_not_started(command[0], error))


def _not_started(program: str, error: OSError) -> int:
    print(f"cannot start {program}: {error}", file=sys.stderr, flush=True)
    return 127


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
