"""A person's word before a promotion."""

from __future__ import annotations

from datetime import timedelta
from typing import Any


def approval_gate(model: str, decision: Any) -> Any:
    """The task `approve`: shows the decision when the gate said yes, and skips the promotion when a person says no."""
    from trainops.operators.promotion_approval import PromotionApprovalOperator  # only DAGs that ask pay for it

    return PromotionApprovalOperator(
        task_id="approve",
        decision=decision,
        subject=f"Promote a new version of {model}?",
        body="{{ ti.xcom_pull(task_ids='decide_promotion')['reason'] }}",
        # Airflow 3.3 fails a task whose answer comes before the scheduler has seen its worker end: it asks again, soon.
        retries=5,
        retry_delay=timedelta(seconds=10),
        retry_exponential_backoff=False,
    )
