"""The command line of the stand-in: `python -m localcloud.vertex --port 8801 --state DIR ...`."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path

from localcloud.vertex.options import Options
from localcloud.vertex.server import serve


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m localcloud.vertex", description="Vertex AI on 127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--state", type=Path, required=True, help="folder that keeps jobs, logs and the journal")
    parser.add_argument("--storage-endpoint", required=True, help="URL of the stand-in for Cloud Storage")
    parser.add_argument("--python", type=Path, required=True, help="interpreter that replicas run with")
    parser.add_argument("--quota-file", type=Path, help="JSON file: region or * -> accelerator -> GPUs")
    parser.add_argument("--grace", type=float, default=5.0, help="seconds between SIGTERM and SIGKILL (default 5)")
    parser.add_argument("--project-number", default="100000000001", help="number that names of jobs show")
    chosen = parser.parse_args()
    if not chosen.python.exists():
        parser.error(f"--python: {chosen.python} does not exist")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    options = Options(
        state=chosen.state.absolute(),
        storage_endpoint=chosen.storage_endpoint.rstrip("/"),
        python=chosen.python.absolute(),
        project_number=chosen.project_number,
        grace=chosen.grace,
        quota_file=chosen.quota_file,
    )
    serve(options, chosen.port)


if __name__ == "__main__":
    main()
