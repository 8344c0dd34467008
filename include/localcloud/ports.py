"""Free ports on loopback: the usual one where it is free, the same one again after a restart, else any.

A port that was chosen is not yet listened on, and another process may choose at the same moment: another clone, the
stand-in that gives replicas their addresses, tests that run side by side. So each choice is held by a name in Linux's
abstract socket namespace, which knows no files, belongs to the network namespace as ports do, and vanishes with the
process that holds it. Outgoing connections do not ask there; they take ports of the kernel's ephemeral range, so any
port is one below it.
"""

from __future__ import annotations

import random
import socket

HOST = "127.0.0.1"
ANY = range(20000, 32000)
"""Ports to choose any from: below Linux's ephemeral range (32768 to 60999 unless changed)."""


class Reservations:
    """Ports that this process has chosen; nobody else who asks here chooses them while it lives."""

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def choose(self, *preferred: int | None) -> int:
        """Reserve the first of the `preferred` ports that is free, else any free one."""
        for port in preferred:
            if port and self.take(port):
                return port
        while True:
            port = random.choice(ANY)
            if self.take(port):
                return port

    def take(self, port: int) -> bool:
        """Reserve `port`; False when somebody listens on it or has it reserved."""
        return is_free(port) and self.hold(port)

    def hold(self, port: int) -> bool:
        """Reserve a port that is perhaps listened on already; False when somebody else has it reserved."""
        name = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            name.bind(f"\0localcloud-port-{port}")
        except OSError:
            name.close()
            return False
        self._held.append(name)
        return True

    def release(self) -> None:
        """Give all of them back."""
        for held in self._held:
            held.close()
        self._held.clear()


def is_free(port: int) -> bool:
    """Say whether nobody listens on `port` of loopback (or of all interfaces)."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
