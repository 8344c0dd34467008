"""Free ports for the addresses of a cluster."""

from __future__ import annotations

import random
import socket
from collections.abc import Collection

# Below Linux's ephemeral range, so that no outgoing connection takes a port between its choice and its use.
_LOWEST, _HIGHEST = 20000, 32000


def free_ports(count: int, taken: Collection[int]) -> list[int]:
    """Return `count` ports of the loopback that nothing listens on and that are not in `taken`."""
    chosen: list[int] = []
    while len(chosen) < count:
        port = random.randint(_LOWEST, _HIGHEST)
        if port not in taken and port not in chosen and _is_free(port):
            chosen.append(port)
    return chosen


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
