"""How far a training job is: the newest `metrics.jsonl` below the run's folder of the storage stand-in."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx


@dataclass(frozen=True)
class Progress:
    """The last line with a loss, and the last evaluation."""

    step: int
    steps: int
    loss: float
    tokens_per_second: float
    remaining_seconds: float | None
    eval_loss: float | None

    def __str__(self) -> str:
        text = f"step {self.step}/{self.steps}   loss {self.loss:.3f}   {self.tokens_per_second:,.0f} tokens/s"
        if self.eval_loss is not None:
            text += f"   evaluation loss {self.eval_loss:.3f}"
        return text if self.remaining_seconds is None else f"{text}   ETA {_clock(self.remaining_seconds)}"


class MetricsReader:
    """Reads the progress of one run; a storage server that is away means no news."""

    def __init__(self, storage_url: str, bucket: str, prefix: str) -> None:
        self._client = httpx.Client(base_url=storage_url, timeout=10.0, trust_env=False)
        self._bucket, self._prefix = bucket, prefix
        self._generation = ""
        self._last: Progress | None = None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def read(self) -> Progress | None:
        """Return the newest progress, None before the first step was logged."""
        try:
            newest = self._newest()
            if newest is not None and newest["generation"] != self._generation:
                path = f"/storage/v1/b/{self._bucket}/o/{quote(newest['name'], safe='')}?alt=media"
                self._last = parse_progress(self._client.get(path).raise_for_status().text) or self._last
                self._generation = newest["generation"]
        except (httpx.HTTPError, ValueError, KeyError):
            pass  # a display: the next look may see more
        return self._last

    def _newest(self) -> dict[str, Any] | None:
        answer = self._client.get(f"/storage/v1/b/{self._bucket}/o", params={"prefix": self._prefix})
        items = answer.raise_for_status().json().get("items", [])
        found = [item for item in items if item["name"].endswith("/metrics.jsonl")]
        return max(found, key=lambda item: str(item["updated"]), default=None)


def parse_progress(text: str) -> Progress | None:
    """Read metrics.jsonl; an incomplete or foreign line is passed over. None when no line has a loss."""
    lines = [line for line in map(_parsed, text.splitlines()) if line]
    losses = [line for line in lines if "loss" in line]
    evaluations = [line["eval_loss"] for line in lines if "eval_loss" in line]
    if not losses:
        return None
    last = losses[-1]
    return Progress(
        step=int(last["step"]),
        steps=int(last["steps"]),
        loss=float(last["loss"]),
        tokens_per_second=float(last.get("tokens_per_second") or 0.0),
        remaining_seconds=last.get("remaining_seconds"),
        eval_loss=evaluations[-1] if evaluations else None,
    )


def _parsed(line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
