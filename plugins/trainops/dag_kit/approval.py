"""A person's word before a promotion."""

from __future__ import annotations

from typing import Any


def approval_gate(model: str) -> Any:
    """The task `approve`: shows the decision, and skips the promotion when a person says no."""
    from airflow.providers.standard.operators.hitl import ApprovalOperator  # only DAGs that ask pay for the import

    return ApprovalOperator(
        task_id="approve",
        subject=f"Promote a new version of {model}?",
        body="{{ ti.xcom_pull(task_ids='decide_promotion')['reason'] }}",
        fail_on_reject=False,
    )
