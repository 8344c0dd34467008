"""The key `policy` of `gpu_pools.yaml`: who goes first in the GPU queue, and who makes room for whom.

The defaults were found by replaying a public trace of jobs of minutes to months; where jobs are shorter, the times in
hours want to be shorter, too.
"""

from __future__ import annotations

from pydantic import Field, model_validator

from trainops.config.model import Config
from trainops.validation import Refused


class QueuePolicy(Config):
    """The order within a priority class, and preemption."""

    preemption: bool = Field(True, description="Whether running jobs make room for others at all.")
    grace_minutes: float = Field(
        10.0, gt=0, description="Minutes in which a job that was asked to leave saves its state; then it is cancelled."
    )
    min_run_minutes: float = Field(
        30.0, ge=0, description="Minutes that a started job runs before another of its class takes its place."
    )
    report_after_minutes: float = Field(
        10.0, gt=0, description="Minutes of running after which a job's own report of the time left is believed."
    )
    probe_gpu_minutes: float = Field(
        20.0, gt=0, description="GPU-minutes that a job counts for until then, whatever it claims."
    )
    boost: float = Field(3.5, ge=0, description="After waiting long a request ranks as if 1 + boost times smaller.")
    boost_shape: float = Field(4.0, gt=0, description="Power of the waiting time with which the boost grows.")
    full_boost_after_times: float = Field(
        5.0, gt=0, description="The boost is full after waiting so many times what the job still needs,"
    )
    full_boost_least_hours: float = Field(6.0, gt=0, description="but not before so many hours,")
    full_boost_after_hours: float = Field(300.0, gt=0, description="and in any case after so many hours.")
    overdue_after_times: float = Field(
        10.0,
        gt=0,
        description="After waiting so many times what it still needs a request goes before all others of its class,",
    )
    overdue_least_hours: float = Field(12.0, gt=0, description="but not before so many hours,")
    overdue_after_hours: float = Field(900.0, gt=0, description="and in any case after so many hours.")
    overdue_share: float = Field(
        0.5, ge=0, le=1, description="Share of a pool that the overdue take together before others had a chance."
    )
    stickiness: float = Field(
        0.4, ge=0, lt=1, description="Share of its work that a running job ranks smaller, against needless changes."
    )
    preempted_again: float = Field(
        0.7, gt=0, le=1, description="Factor on the work of a running job for each time that it made room before."
    )
    default_estimate_hours: float = Field(
        4.0, gt=0, description="Hours that a job is taken to run where nobody says, to tell others when they start."
    )

    @model_validator(mode="after")
    def _in_order(self) -> QueuePolicy:
        if self.overdue_after_hours < self.full_boost_after_hours:
            raise Refused(
                "a request is overdue only after its boost is full",
                key="overdue_after_hours",
                value=self.overdue_after_hours,
                next_step=f"take at least {self.full_boost_after_hours:g}",
            )
        return self
