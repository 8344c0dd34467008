from __future__ import annotations

from datetime import timedelta

import pytest
from tests.unit.steps.lifecycle_model.world import World


@pytest.fixture
def world() -> World:
    """A job key that waits, while another one holds the pool."""
    world = World(2, timedelta(0), deadlines=False)
    world.begin()
    world.other_takes_gpus()
    world.look().to_the_end()
    return world
