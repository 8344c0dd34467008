"""Run the storage proxy: `python -m localcloud.storage --port P --upstream URL --journal FILE --bucket NAME ...`."""

from __future__ import annotations

import argparse
from pathlib import Path

import uvicorn

from localcloud.storage.app import create_app


def main() -> None:
    """Serve on 127.0.0.1 until TERM."""
    parser = argparse.ArgumentParser(
        prog="localcloud.storage", description="Cloud Storage stand-in: proxy before fake-gcs-server"
    )
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--upstream", required=True, help="address of fake-gcs-server")
    parser.add_argument("--journal", type=Path, required=True, help="file of JSON lines, one per request")
    parser.add_argument("--bucket", action="append", default=[], help="bucket that must exist; may be repeated")
    options = parser.parse_args()
    app = create_app(options.upstream, options.journal, options.bucket)
    # The proxy sets Date itself, to the second; uvicorn would add a second one.
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=options.port,
        log_level="warning",
        access_log=False,
        date_header=False,
        server_header=False,
        timeout_graceful_shutdown=3,
    )


if __name__ == "__main__":
    main()
