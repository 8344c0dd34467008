"""Installs a job's packages: downloads them, then becomes pip.

Run as a file, so it imports the standard library only.
"""

import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path


def main(endpoint: str, python: str, folder: Path, uris: list[str]) -> None:
    """Install `uris` into `folder`/site with the pip of `python`; exits with pip's code, or 1 when a download fails."""
    downloads = folder / "packages"
    downloads.mkdir(parents=True, exist_ok=True)
    files = [str(_download(endpoint, uri, downloads)) for uri in uris]
    sys.stdout.flush()
    options = ["--isolated", "--no-input", "--disable-pip-version-check", "--no-cache-dir"]
    offline = ["--no-index", "--no-deps", "--no-build-isolation"]
    os.execv(python, [python, "-m", "pip", *options, "install", *offline, "--target", str(folder / "site"), *files])


def _download(endpoint: str, uri: str, folder: Path) -> Path:
    bucket, _, name = uri.removeprefix("gs://").partition("/")
    url = f"{endpoint}/storage/v1/b/{bucket}/o/{urllib.parse.quote(name, safe='')}?alt=media"
    path = folder / name.rpartition("/")[2]
    print(f"Downloading {uri}", flush=True)
    try:
        with urllib.request.urlopen(url, timeout=60) as reply:
            path.write_bytes(reply.read())
    except urllib.error.HTTPError as error:
        raise SystemExit(f"ERROR: cannot download {uri}: HTTP {error.code} {error.reason}") from None
    except OSError as error:
        raise SystemExit(f"ERROR: cannot download {uri}: {error}") from None
    return path


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4:])
