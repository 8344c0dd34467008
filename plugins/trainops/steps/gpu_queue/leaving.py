"""Tells a job that it is to save its state and leave: in its record first, then where its trainer looks for orders."""

from __future__ import annotations

import contextlib
from datetime import timedelta

from trainops import naming
from trainops.errors import IntegrityError, WriteConflict
from trainops.gcp.storage import Storage
from trainops.policy.record import LeaveOrder, Record
from trainops.steps.gpu_queue.ledger import LeaseEntry, Ledger
from trainops.steps.gpu_queue.orders import JobOrders, OrderStore
from trainops.steps.record_store import RecordStore


class LeaveSignals:
    """Carries out what the ledger says of those that are to leave; anybody may, any number of times.

    :param grace_minutes: how long they may take before they are cancelled.
    """

    def __init__(self, storage: Storage, grace_minutes: float) -> None:
        self._storage = storage
        self._grace = timedelta(minutes=grace_minutes)
        self._sent: set[str] = set()
        """Jobs that were told by this process."""

    def send(self, ledger: Ledger, orders: OrderStore) -> None:
        """Tell all that are to leave and that this process has not told yet."""
        leaving = ledger.leaving()
        self._sent &= {item.job_name for item in leaving.values() if item.job_name}
        for key, entry in leaving.items():
            if entry.job_name is not None and entry.job_name not in self._sent:
                with contextlib.suppress(IntegrityError):  # housekeeping reports a record that cannot be read
                    self._tell(entry)
                orders.change_job(key, JobOrders.left)
                self._sent.add(entry.job_name)

    def _tell(self, entry: LeaseEntry) -> None:
        record = RecordStore(self._storage, entry.record).change(lambda now: self._ordered(now, entry))
        attempt = None if record is None else record.attempt
        if record is None or attempt is None or attempt.leave is None or attempt.job_name != entry.job_name:
            return
        order = {"why": attempt.leave.why, "leave_by": attempt.leave.leave_by.isoformat()}
        with contextlib.suppress(WriteConflict):  # another process has told it
            self._storage.write_json(
                f"{naming.control_folder(record.folder, attempt.number)}/preempt", order, generation=0
            )

    def _ordered(self, record: Record | None, entry: LeaseEntry) -> Record | None:
        attempt = None if record is None else record.attempt
        if record is None or attempt is None or attempt.job_name != entry.job_name or entry.leaving is None:
            return None
        if attempt.leave is not None or attempt.verdict is not None:
            return record
        asked = entry.leaving.asked_at
        order = LeaveOrder(at=asked, leave_by=asked + self._grace, why=entry.leaving.why)
        what = f"asks {attempt.job_name} to save its state and leave"
        return record.told(asked, "the GPU queue", what, order.why, attempts=record.with_attempt(leave=order))
