"""Ends what a local cloud left running, whoever is still alive to know of it."""

from __future__ import annotations

import logging
import os

import psutil

from localcloud.home import Home
from localcloud.process import kill_all, marked_processes, session_members
from localcloud.state import CloudState

log = logging.getLogger("localcloud")


def find_leftovers(home: Home) -> list[psutil.Process]:
    """Return the components in the state file, verified by start time, and all processes that inherited the mark."""
    state = CloudState.load(home.state_file)
    known = [one.process for one in state.components if one.process is not None] if state else []
    found = {process.pid: process for identity in known for process in session_members(identity)}
    found |= {process.pid: process for process in marked_processes(home.state)}
    found.pop(os.getpid(), None)
    return list(found.values())


def end_leftovers(home: Home) -> int:
    """Kill the left-overs until none is found; return how many there were."""
    ended = 0
    for _ in range(5):
        leftovers = find_leftovers(home)
        if not leftovers:
            break
        log.info("ending %d left-over processes", len(leftovers))
        kill_all(leftovers)
        ended += len(leftovers)
    return ended
