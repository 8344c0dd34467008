"""Ports for the servers of tests, held while the test process lives, since tests run side by side."""

from localcloud.ports import Reservations

_HELD = Reservations()


def free_port() -> int:
    """A port that nobody listens on and nobody else has chosen."""
    return _HELD.choose()


def free_pair() -> int:
    """Such a port, the next one free too (the storage server takes the one after its proxy's)."""
    while True:
        port = free_port()
        if _HELD.take(port + 1):
            return port
