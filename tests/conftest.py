"""The order of the tests."""

from pathlib import Path

import pytest

WAITING = Path(__file__).parent / "integration"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that wait for servers: at the end of a run, processes would idle beside the last of them."""
    items.sort(key=lambda item: WAITING not in item.path.parents)
