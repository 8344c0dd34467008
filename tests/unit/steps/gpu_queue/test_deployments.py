"""Deployments that share a ledger share its quotas; whose file differs admits nobody, and ends nothing."""

from __future__ import annotations

from tests.unit.steps.lifecycle_model.world import JOB_KEY, POOLS, SETTINGS, World

from trainops import naming
from trainops.config.gpu_pools import GpuPools
from trainops.steps.gpu_queue import GpuQueue

POOL = "NVIDIA_TESLA_T4/us-central1/standard"


def other_deployment(world: World, quota: int) -> GpuQueue:
    """A deployment whose file has another quota."""
    pools = GpuPools(pools=[POOLS.pools[0].model_copy(update={"quota": quota})])
    return GpuQueue(world.calm.storage, SETTINGS.work, pools)


def test_one_with_another_quota_admits_nobody_and_says_what_differs(world: World) -> None:
    other = other_deployment(world, 8)
    tick = other.tick()
    assert JOB_KEY not in tick.ledger.leases
    assert f"gpu_pools.yaml here says 8 for {POOL}, and that of the deployment whose jobs run 2" in tick.reason(JOB_KEY)


def test_it_still_binds_holds_and_frees_what_runs(world: World) -> None:
    other = other_deployment(world, 8)
    record = world.existing_record
    other.hold(record, "gs://my-bucket/record.json", "projects/12/locations/us-central1/customJobs/1")
    assert JOB_KEY in world.leases()
    other.release(JOB_KEY)
    assert JOB_KEY not in world.leases()


def test_one_that_is_adopted_counts_and_the_others_wait_for_their_files(world: World) -> None:
    other = other_deployment(world, 8)
    other.adopt()
    assert JOB_KEY in other.tick().ledger.leases
    assert "nobody is admitted here" in world.calm.queue.tick().reason("somebody")


def test_an_empty_ledger_takes_any_file(world: World) -> None:
    world.other_gives_back()
    assert JOB_KEY in other_deployment(world, 8).tick().ledger.leases


def test_a_ledger_of_the_layout_before_is_read(world: World) -> None:
    uri = naming.ledger_uri(SETTINGS.work)
    found = world.calm.storage.read_json(uri)
    assert found is not None
    old = {key: value for key, value in found.value.items() if key != "policy"} | {
        "schema": 1, "reasons": {JOB_KEY: "it waits"}, "quotas_hash": "0",
    }  # fmt: skip
    for entry in old["leases"].values():
        for key in ("probe", "backfill", "leaving"):
            del entry[key]
    world.calm.storage.write_json(uri, old, generation=None)
    world.other_gives_back()
    assert JOB_KEY in world.calm.queue.tick().ledger.leases
