"""The GPU queue in object storage: requests, orders, and the ledger that says who holds GPUs."""

from trainops.steps.gpu_queue.ledger import LeaseEntry, Ledger
from trainops.steps.gpu_queue.queue import GpuQueue, Tick
from trainops.steps.gpu_queue.requests import QueueRequest

__all__ = ["GpuQueue", "LeaseEntry", "Ledger", "QueueRequest", "Tick"]
