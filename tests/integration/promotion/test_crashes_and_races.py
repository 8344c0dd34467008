"""Promotion killed at every write, and promotion by many at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from trainops import naming
from trainops.config.plan import RunPlan
from trainops.gcp.storage import Storage
from trainops.steps.promotion import decide, promote

if TYPE_CHECKING:
    from tests.integration.promotion.conftest import Registry


class Crash(Exception):
    """The process is gone."""


class CrashingStorage(Storage):
    """Real storage whose process dies at the n-th write: before it, or after it was stored."""

    def __init__(self, real: Storage, at: int, after: bool) -> None:
        super().__init__(real._client)
        self.writes, self.at, self.after = 0, at, after

    def write_bytes(self, uri: str, data: bytes, **options: Any) -> int:
        return self._dying(lambda: super(CrashingStorage, self).write_bytes(uri, data, **options))

    def copy(self, source: str, target: str, *, generation: int | None = 0) -> int:
        return self._dying(lambda: super(CrashingStorage, self).copy(source, target, generation=generation))

    def _dying(self, write: Callable[[], int]) -> int:
        self.writes += 1
        if self.writes == self.at and not self.after:
            raise Crash
        done = write()
        if self.writes == self.at:
            raise Crash
        return done


@pytest.mark.parametrize("after", [False, True], ids=["before the write", "after the write"])
def test_a_crash_at_any_write_ends_as_if_there_had_been_none(registry: Registry, after: bool) -> None:
    champion = registry.finish(1)
    registry.promote(champion)
    undisturbed = None
    for at in range(1, 50):
        plan = registry.finish(2, eval_loss=3.0)
        crashed = crashes(registry, plan, at, after)
        swapped = registry.pointer().version == registry.version(plan)
        assert not swapped or registry.manifest(plan) is not None
        registry.decide(plan)
        assert registry.promote(plan).promoted
        ended = registry.contents()
        undisturbed = undisturbed or ended
        assert ended == undisturbed
        if not crashed:
            break
        start_over(registry, champion, plan)
    # The decision, four files, the card, the manifest, the pointer: each was the last write once.
    assert at == 9


def crashes(registry: Registry, plan: RunPlan, at: int, after: bool) -> bool:
    """Decide and promote in a process that dies at a write; False when it came to its end before."""
    dying = CrashingStorage(registry.storage, at, after)
    try:
        decide(dying, plan, 1, registry.settings)
        promote(dying, plan, 1, registry.settings, by=plan.run_key)
    except Crash:
        return True
    return False


def start_over(registry: Registry, champion: RunPlan, plan: RunPlan) -> None:
    """Back to the champion alone."""
    models = f"{registry.settings.models}/{registry.model}"
    run_folder = naming.run_folder(registry.settings.work, plan.experiment, plan.run_key)
    for prefix in (f"{models}/versions/{registry.version(plan)}/", f"{run_folder}/", f"{models}/channels/"):
        for info in list(registry.storage.list(prefix)):
            registry.storage.delete(info.uri)
    registry.promote(champion)


def test_a_retry_does_not_undo_a_rollback(registry: Registry) -> None:
    first, second = registry.finish(1), registry.finish(2, eval_loss=3.0)
    registry.promote(first)
    registry.promote(second)
    registry.rollback()
    again = registry.promote(second)
    assert not again.promoted
    assert "replaced since" in again.reason
    assert registry.pointer().version == registry.version(first)


@pytest.mark.case("C092")
def test_twenty_runs_promoting_at_once_lose_nothing(registry: Registry) -> None:
    plans = [registry.finish(number, eval_loss=4.0 - number / 100) for number in range(1, 21)]
    start = threading.Barrier(len(plans))

    def promoted(plan: RunPlan) -> bool:
        start.wait()
        return registry.promote(plan).promoted

    with ThreadPoolExecutor(len(plans)) as pool:
        done = list(pool.map(promoted, plans))
    placements = registry.pointer().placements
    assert placements[0].version == registry.version(plans[-1])
    assert sorted(item.version for item in placements) == [
        registry.version(plan) for plan, won in zip(plans, done, strict=True) if won
    ]
    losses = [item.eval_loss for item in placements]
    assert losses == sorted(losses)


def test_twenty_people_setting_a_channel_at_once_lose_nothing(registry: Registry) -> None:
    versions = complete_versions(registry, 20)
    start = threading.Barrier(20)

    def put(number: int) -> None:
        start.wait()
        registry.rollback(versions[number], by=f"person {number}")

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(put, range(20)))
    placements = registry.pointer().placements
    assert sorted(item.by for item in placements) == sorted(f"person {number}" for number in range(20))


def complete_versions(registry: Registry, count: int) -> list[str]:
    """Complete versions that no channel points at."""
    first = registry.finish(1)
    registry.promote(first)
    found = registry.manifest(first)
    assert found is not None
    registry.storage.delete(registry.channel().uri)
    plans = [registry.plan(number) for number in range(101, 101 + count)]
    for plan in plans:
        manifest = found.model_copy(update={"version": registry.version(plan), "run_key": plan.run_key})
        folder = naming.version_folder(registry.settings.models, registry.model, plan.run_key, 1)
        registry.storage.write_json(f"{folder}/manifest.json", manifest.to_json(), generation=0)
    return [registry.version(plan) for plan in plans]


def test_a_run_that_loses_the_race_keeps_its_version(registry: Registry) -> None:
    slow, fast = registry.finish(1, eval_loss=3.0), registry.finish(2, eval_loss=2.9)

    class Overtaken(Storage):
        def write_bytes(self, uri: str, data: bytes, **options: Any) -> int:
            if uri.endswith("/channels/production.json"):
                registry.promote(fast)
            return super().write_bytes(uri, data, **options)

    late = promote(Overtaken(registry.storage._client), slow, 1, registry.settings, by="a")
    assert not late.promoted
    assert registry.pointer().version == registry.version(fast)
    assert registry.manifest(slow) is not None
