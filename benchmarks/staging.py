"""Staging of many small files and of large ones: the first time, again unchanged, and with one file changed.

Beside it what else moves local files into a bucket: the Google provider's LocalFilesystemToGCSOperator, `gcsfs.put`,
and the storage client's own transfer manager, all against the same GCS server. Those copy bytes. Staging also reads
every row: it checks, counts, drops duplicates, and packs documents.
`python -m benchmarks.staging [--files 2000] [--large-mb 64] [--threads 4] [--output text|json]`; the figures of
docs/reference/benchmarks.md are of `--files 10000 --large-mb 2000`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.local_services import PROJECT, WORK, storage_calls, storage_server

SMALL_BYTES = 2_000
LARGE_FILES = 8
ROW_CHARACTERS = 1_000
WORKERS = 8
"""Of the transfer manager: its own default."""
ROUNDS = ("first time", "again, unchanged", "one file changed")
Json = dict[str, Any]
Way = Callable[[Path, str], None]


def main(arguments: argparse.Namespace) -> int:
    """Measure all and print the table."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="trainops-bench-") as name, storage_server(Path(name)) as url:
        os.environ |= environment(Path(name), url)
        data = {"small": small_files(Path(name), arguments.files), "large": large_files(Path(name), arguments.large_mb)}
        figures = {
            kind: {
                title: measure(way, folder, f"{kind}/{at}", Path(name))
                for at, (title, way) in enumerate(ways(arguments))
            }
            for kind, folder in data.items()
        }
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "load_before": round(load, 1)}
    if arguments.output == "json":
        print(json.dumps({"machine": machine, "arguments": vars(arguments), "figures": figures}, indent=1))
    else:
        print_tables(figures, arguments, machine)
    return 0


def environment(folder: Path, url: str) -> dict[str, str]:
    """Variables that lead Google's client and the provider's hook to the server."""
    connection = {"conn_type": "google_cloud_platform", "extra": {"is_anonymous": True, "project": PROJECT}}
    return {
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        "AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT": json.dumps(connection),
        "STORAGE_EMULATOR_HOST": url,
        "GOOGLE_CLOUD_PROJECT": PROJECT,
    }


def small_files(folder: Path, count: int) -> Path:
    """Write many small texts, a hundred a folder."""
    chance, root = random.Random(1), folder / "small"
    for number in range(count):
        path = root / f"{number // 100:04}" / f"{number:06}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text_of(chance, SMALL_BYTES))
    return root


def large_files(folder: Path, megabytes: int) -> Path:
    """Write some large files of rows."""
    chance, root = random.Random(2), folder / "large"
    root.mkdir()
    words = text_of(chance, 1_000_000)
    for number in range(LARGE_FILES):
        with (root / f"{number}.jsonl").open("w") as file:
            for row in range(megabytes * 1_000_000 // LARGE_FILES // (ROW_CHARACTERS + 40)):
                at = chance.randrange(len(words) - ROW_CHARACTERS)
                file.write(json.dumps({"text": f"{number} {row} {words[at : at + ROW_CHARACTERS]}"}) + "\n")
    return root


def text_of(chance: random.Random, size: int) -> str:
    """Words of made-up text, about `size` characters."""
    words = [f"{chance.getrandbits(24):x}" for _ in range(500)]
    return " ".join(chance.choices(words, k=size // 7))


def ways(arguments: argparse.Namespace) -> list[tuple[str, Way]]:
    """What is measured, with its title."""
    return [
        ("Trainops", lambda folder, prefix: stage(folder, prefix, arguments.threads)),
        ("LocalFilesystemToGCSOperator", provider),
        ("gcsfs.put", filesystem),
        ("transfer_manager", transfer_manager),
    ]


def stage(folder: Path, prefix: str, threads: int) -> None:
    """Stage with Trainops."""
    from trainops.config.dataset import Dataset
    from trainops.gcp.storage import Storage
    from trainops.steps.staging import stage_dataset

    dataset = Dataset(name="bench", description="Bench.", path=str(folder), threads=threads)
    stage_dataset(Storage(client()), dataset, date(2026, 11, 29), f"gs://{WORK}/{prefix}", progress=lambda _: None)


def provider(folder: Path, prefix: str) -> None:
    """Copy with the Google provider's operator, which takes files of one folder, or a list."""
    from airflow.providers.google.cloud.transfers.local_to_gcs import LocalFilesystemToGCSOperator

    files = sorted(str(path) for path in folder.rglob("*") if path.is_file())
    LocalFilesystemToGCSOperator(task_id="copy", src=files, dst=f"{prefix}/", bucket=WORK).execute({})


def filesystem(folder: Path, prefix: str) -> None:
    """Copy with gcsfs."""
    # The class of plain buckets: the other one asks over gRPC first what kind of bucket it is.
    from gcsfs.core import GCSFileSystem

    system = GCSFileSystem(
        project=PROJECT, token="anon", endpoint_url=os.environ["STORAGE_EMULATOR_HOST"], skip_instance_cache=True
    )
    system.put(f"{folder}/", f"{WORK}/{prefix}/", recursive=True)


def transfer_manager(folder: Path, prefix: str) -> None:
    """Copy with the storage client's transfer manager, in threads."""
    from google.cloud.storage import transfer_manager as manager

    files = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file()]
    done = manager.upload_many_from_filenames(
        client().bucket(WORK), files, source_directory=str(folder), blob_name_prefix=f"{prefix}/",
        worker_type=manager.THREAD, max_workers=WORKERS, raise_exception=True,
    )  # fmt: skip
    assert len(done) == len(files)


def client() -> Any:
    """A client of the server, with connections for all threads."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    from trainops.gcp.session import keep_connections

    connect: Any = storage.Client
    anonymous: Any = AnonymousCredentials
    made = connect(project=PROJECT, credentials=anonymous())
    keep_connections(made._http)
    return made


def measure(way: Way, folder: Path, prefix: str, logs: Path) -> dict[str, Json]:
    """Measure a way three times, and leave the folder as it was and the bucket empty."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    size = sum(path.stat().st_size for path in files)
    before = files[len(files) // 2].read_bytes()
    found = {}
    for name in ROUNDS:
        if name == "one file changed":
            files[len(files) // 2].write_bytes(b"-".join(before.rsplit(b" ", 1)))
        calls, cpu, started = storage_calls(logs / "storage.log"), time.process_time(), time.perf_counter()
        way(folder, prefix)
        seconds = time.perf_counter() - started
        found[name] = {
            "seconds": seconds,
            "CPU seconds": time.process_time() - cpu,
            "files/s": len(files) / seconds,
            "MB/s": size / 1e6 / seconds,
            "requests": storage_calls(logs / "storage.log") - calls,
        }
    files[len(files) // 2].write_bytes(before)
    for blob in client().list_blobs(WORK, prefix=f"{prefix}/"):
        blob.delete()
    return found


def print_tables(figures: dict[str, dict[str, dict[str, Json]]], arguments: argparse.Namespace, machine: Json) -> None:
    """Print a table for each kind of data; the ratio is their seconds to ours: over 1 ours is faster."""
    print(f"{machine['cores']} cores, Python {machine['python']}, load before {machine['load_before']}.")
    titles = {
        "small": f"{arguments.files} texts of {SMALL_BYTES} bytes",
        "large": f"{arguments.large_mb} MB of JSONL in {LARGE_FILES} files",
    }
    for kind, ours_and_others in figures.items():
        print(f"\n{titles[kind]}")
        print(f"{'':<20}{'':<32}{'seconds':>10}{'CPU s':>8}{'files/s':>10}{'MB/s':>8}{'requests':>10}{'ratio':>8}")
        for name in ROUNDS:
            mine = ours_and_others["Trainops"][name]["seconds"]
            for title, rounds in ours_and_others.items():
                one = rounds[name]
                ratio = "" if title == "Trainops" else f"{one['seconds'] / mine:.2f}"
                print(
                    f"{name:<20}{title:<32}{one['seconds']:>10.2f}{one['CPU seconds']:>8.2f}{one['files/s']:>10.0f}"
                    f"{one['MB/s']:>8.1f}{one['requests']:>10}{ratio:>8}"
                )


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=2000, help="small files (default 2000)")
    parser.add_argument("--large-mb", type=int, default=64, help="size of the large ones together, MB (default 64)")
    parser.add_argument("--threads", type=int, default=4, help="threads of Trainops (default 4)")
    parser.add_argument("--output", choices=["text", "json"], default="text")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main(parse()))
