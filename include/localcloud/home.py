"""Where everything lies: the project, the state of this clone's local cloud below it, and the interpreters."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from localcloud.errors import UsageError

INCLUDE = Path(__file__).resolve().parent.parent
"""The folder from which `localcloud` is imported."""


@dataclass(frozen=True)
class Home:
    """The folders of one local cloud."""

    root: Path
    """The project: `dags/`, `plugins/`, `.venv-trainer/`."""
    dags: Path
    """Folder of the DAG files."""
    trainer_python: Path
    """Interpreter that the Vertex stand-in runs replicas with."""

    @classmethod
    def locate(cls, root: str | None = None, dags: str | None = None) -> Home:
        """Find the folders: by the options, else by LOCALCLOUD_ROOT, _DAGS and _TRAINER_PYTHON, else in this clone."""
        chosen = root or os.environ.get("LOCALCLOUD_ROOT")
        folder = Path(chosen).resolve() if chosen else INCLUDE.parent
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder; give --root the folder of the project")
        dags_folder = Path(dags or os.environ.get("LOCALCLOUD_DAGS") or folder / "dags").resolve()
        trainer = Path(os.environ.get("LOCALCLOUD_TRAINER_PYTHON") or folder / ".venv-trainer" / "bin" / "python")
        return cls(folder, dags_folder, trainer.absolute())

    @property
    def state(self) -> Path:
        """Everything that the local cloud keeps."""
        return self.root / ".localcloud"

    @property
    def logs(self) -> Path:
        """One log file per component, and the supervisor's."""
        return self.state / "logs"

    @property
    def airflow(self) -> Path:
        """AIRFLOW_HOME."""
        return self.state / "airflow"

    @property
    def endpoints_file(self) -> Path:
        """Addresses and login, for the product and for people."""
        return self.state / "endpoints.json"

    @property
    def state_file(self) -> Path:
        """What the supervisor runs, and how it is."""
        return self.state / "state.json"

    @property
    def environment_file(self) -> Path:
        """Airflow's environment, for `env` and `airflow`."""
        return self.state / "airflow-env.json"

    def check(self) -> None:
        """Raise UsageError when something that the person must provide is missing."""
        if not self.trainer_python.exists():
            raise UsageError(f"the trainer's interpreter {self.trainer_python} is missing; run `make setup`")
        if not self.dags.is_dir():
            raise UsageError(f"{self.dags} is not a folder; give --dags the folder of the DAG files")

    def make_folders(self) -> None:
        """Create the state's folders."""
        for folder in (self.state, self.logs, self.airflow, self.state / "vertex"):
            folder.mkdir(parents=True, exist_ok=True)
