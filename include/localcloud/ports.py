"""Free ports on loopback: the usual one where it is free, the same one again after a restart, else any.

A port that was chosen is not yet listened on, and another clone may choose at the same moment. So each choice is held
by a name in Linux's abstract socket namespace, which knows no files, belongs to the network namespace as ports do, and
vanishes with the process that holds it.
"""

from __future__ import annotations

import socket

HOST = "127.0.0.1"


class Reservations:
    """Ports that this process has chosen; no other local cloud of this machine chooses them while it lives."""

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def choose(self, *preferred: int | None) -> int:
        """Reserve the first of the `preferred` ports that is free, else any free one."""
        for port in preferred:
            if port and is_free(port) and self._hold(port):
                return port
        while True:
            port = free_port()
            if self._hold(port):
                return port

    def release(self) -> None:
        """Give all of them back."""
        for held in self._held:
            held.close()
        self._held.clear()

    def _hold(self, port: int) -> bool:
        name = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            name.bind(f"\0localcloud-port-{port}")
        except OSError:
            name.close()
            return False
        self._held.append(name)
        return True


def is_free(port: int) -> bool:
    """Say whether nobody listens on `port` of loopback (or of all interfaces)."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
