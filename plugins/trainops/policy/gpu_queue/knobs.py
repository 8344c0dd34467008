"""The knobs of the queue's policy."""

from __future__ import annotations

from dataclasses import dataclass

MINUTE, HOUR = 60.0, 3600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Knobs:
    """How requests of one priority class are ranked. The defaults were found by replaying a public trace.

    What is long to wait depends on the job: a day is little for one that takes a week, and much for one of an hour. So
    the boost is full, and a request overdue, after some times the seconds that it still needs, within bounds.
    """

    report_after: float = 600.0
    """Seconds of running after which a job's own report of the time left is believed. Until then it is on probe."""
    probe_work: float = 1200.0
    """GPU-seconds that a job counts for until it has run so long, whatever it claims and however many GPUs it takes."""
    boost: float = 3.5
    """A request that waited long ranks as if it had 1 + `boost` times less work."""
    boost_shape: float = 4.0
    """Power with which the boost grows with the waiting time: 1 is even, more is later and steeper."""
    full_boost_times: float = 5.0
    """The boost is full after waiting so many times what the job still needs ..."""
    full_boost_least: float = 6 * HOUR
    """... but not before so many seconds ..."""
    full_boost_after: float = 300 * HOUR
    """... and in any case after so many."""
    overdue_times: float = 10.0
    """After waiting so many times what it still needs a request goes before all others of its class, the oldest first
    ..."""
    overdue_least: float = 12 * HOUR
    """... but not before so many seconds ..."""
    overdue_after: float = 900 * HOUR
    """... and in any case after so many."""
    overdue_share: float = 0.5
    """Share of a pool that overdue requests may hold together, where others can use the rest; one may always start."""
    stickiness: float = 0.4
    """A running job ranks as if it had this share of its work less, so that near equals do not change places."""
    preempted_again: float = 0.7
    """Factor on the work of a running job for each time that it was preempted before."""
    preempted_floor: float = 0.003
    """Least value of that factor."""
    min_run: float = 30 * MINUTE
    """Seconds for which a job that was started is not preempted within its class. One on probe: `report_after`."""
    default_estimate: float = 4 * HOUR
    """Seconds that a job is taken to run where neither its owner nor an earlier run of its experiment says."""
