"""Who gets GPUs next, who makes room, and why everybody else waits: pure and deterministic.

`plan()` decides, `explain()` says why in a sentence for every request. Times are seconds: moments since the epoch,
durations as they are. Nothing here reads a clock or an object, so the same function runs in production, in replays of
traces and in tests.
"""

from trainops.policy.gpu_queue.explain import explain
from trainops.policy.gpu_queue.knobs import Knobs
from trainops.policy.gpu_queue.plan import Admission, Preemption, QueuePlan, plan
from trainops.policy.gpu_queue.request import Lease, Request

__all__ = ["Admission", "Knobs", "Lease", "Preemption", "QueuePlan", "Request", "explain", "plan"]
