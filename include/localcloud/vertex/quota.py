"""Quotas in GPUs per region, accelerator and provisioning model; a job that does not fit waits."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from localcloud.vertex.records import QUEUED, JobRecord

DEFAULT_LIMITS = {
    "NVIDIA_TESLA_T4": 16,
    "NVIDIA_TESLA_V100": 16,
    "NVIDIA_TESLA_P4": 16,
    "NVIDIA_TESLA_P100": 16,
    "NVIDIA_L4": 8,
    "NVIDIA_TESLA_A100": 8,
    "NVIDIA_A100_80GB": 8,
}
OTHER_LIMIT = 8
"""Limit of an accelerator that neither the file nor the table above names."""


class Quotas:
    """Limits from a JSON file, read anew when it changes, over the defaults.

    The file maps a region, or "*" for every region, to accelerators; each has a number (for both provisioning models,
    each with its own count) or `{"standard": 4, "preemptible": 8}`. Spot and Flex-start jobs use the preemptible limit,
    as on Vertex.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._read_at = 0
        self._file: dict[str, dict[str, Any]] = {}

    def limit(self, region: str, accelerator: str, model: str) -> int:
        """Return the GPUs that may run at once; `model` is standard or preemptible."""
        self._refresh()
        for section in (region, "*"):
            value = self._file.get(section, {}).get(accelerator)
            if isinstance(value, dict):
                value = value.get(model)
            if value is not None:
                return int(value)
        return DEFAULT_LIMITS.get(accelerator, OTHER_LIMIT)

    def fits(self, record: JobRecord, live: Iterable[JobRecord]) -> bool:
        """Return whether all GPUs of a queued job are free beside those that the live jobs hold."""
        used = usage(live)
        return all(used.get(key, 0) + count <= self.limit(*key) for key, count in usage([record], queued=True).items())

    def _refresh(self) -> None:
        if self._path is None or not self._path.exists():
            return
        changed = self._path.stat().st_mtime_ns
        if changed != self._read_at:
            self._file = json.loads(self._path.read_text(encoding="utf-8"))
            self._read_at = changed


def usage(records: Iterable[JobRecord], *, queued: bool = False) -> dict[tuple[str, str, str], int]:
    """Return the GPUs that jobs hold by (region, accelerator, provisioning model).

    :param queued: count jobs in the queue too, which hold none yet.
    """
    used: dict[tuple[str, str, str], int] = {}
    for record in records:
        if record.state == QUEUED and not queued:
            continue
        model = "preemptible" if record.scheduling.get("strategy") in {"SPOT", "FLEX_START"} else "standard"
        for accelerator, count in record.accelerators().items():
            key = (record.location, accelerator, model)
            used[key] = used.get(key, 0) + count
    return used
