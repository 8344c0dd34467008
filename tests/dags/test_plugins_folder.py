"""What Airflow makes of the plugins folder: one plugin, and no module of the library under a bare name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROBE = """
import json, sys, warnings
warnings.simplefilter("ignore")
from airflow import plugins_manager
found, errors = plugins_manager._get_plugins()
import queue
print(json.dumps({
    "plugins": sorted(plugin.name for plugin in found if "trainops" in plugin.name),
    "errors": errors,
    "queue": queue.__file__,
    "bare": sorted(set(sys.modules) & {"naming", "settings", "storage", "vertex", "translate", "run", "lifecycle"}),
    "timetables": [t.__name__ for plugin in found if plugin.name == "trainops" for t in plugin.timetables],
}))
"""


def test_the_library_is_not_loaded_file_by_file_as_plugins(tmp_path: Path) -> None:
    base = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "TRAINOPS"))}
    environment = base | {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins")}
    done = subprocess.run(
        [sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["plugins"] == ["trainops"]
    assert found["errors"] == {}
    assert "plugins" not in found["queue"]
    assert found["bare"] == []
    assert found["timetables"] == ["ExperimentTimetable"]
