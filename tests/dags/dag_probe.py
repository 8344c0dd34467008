"""Load the DAG files in this fresh interpreter and print what the policies are about as JSON.

A program of its own, since hash seeds, defaults of Airflow and imported modules belong to a whole interpreter.
"""

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

HEAVY = [
    "google.cloud.aiplatform",
    "google.cloud.aiplatform_v1",
    "google.cloud.storage",
    "pandas",
    "torch",
    "airflow.providers.google.cloud",
]


def main(folder: Path) -> None:
    """Print what was found as the last line; what the loading itself prints comes before."""
    heavy = modules_brought_in(folder)
    print("\n" + json.dumps({"heavy": heavy, **dags_of(folder)}, sort_keys=True, default=str))


def modules_brought_in(folder: Path) -> list[str]:
    """Import each file with nothing of Airflow loaded but its SDK, and say which heavy modules that brought in."""
    importlib.import_module("airflow.sdk")
    for file in sorted(folder.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"dag_file_{file.stem}", file)
        assert spec is not None
        assert spec.loader is not None
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    return [name for name in HEAVY if name in sys.modules]


def dags_of(folder: Path) -> dict[str, Any]:
    """Load the folder into a DagBag: its errors, and every DAG's properties and serialized form."""
    from airflow.dag_processing.dagbag import DagBag
    from airflow.serialization.serialized_objects import DagSerialization

    bag = DagBag(dag_folder=folder, bundle_path=folder, bundle_name="dags")
    dags = {
        dag_id: {
            "file": Path(dag.fileloc).name,
            "owner": dag.owner,
            "tags": sorted(dag.tags),
            "doc": dag.doc_md or "",
            "start_date": dag.start_date and dag.start_date.isoformat(),
            "zone": str(dag.timezone),
            "catchup": dag.catchup,
            "schedule": dag.timetable.summary if hasattr(dag.timetable, "summary") else str(dag.timetable),
            "retries": {task.task_id: task.retries for task in dag.tasks},
            "serialized": DagSerialization.to_dict(dag),
        }
        for dag_id, dag in sorted(bag.dags.items())
    }
    return {"errors": bag.import_errors, "dags": dags}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
