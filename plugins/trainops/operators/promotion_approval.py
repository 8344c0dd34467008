"""A person's word before a promotion, asked only when the gate said yes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk.exceptions import AirflowSkipException

if TYPE_CHECKING:
    from airflow.sdk import Context


class PromotionApprovalOperator(ApprovalOperator):
    """Shows the gate's decision and waits for *Approve* or *Reject*; a rejection skips the promotion.

    :param decision: what `decide_promotion` returned; when it says no, nobody is asked.
    """

    template_fields: Sequence[str] = ("subject", "body", "decision")

    def __init__(self, *, decision: Any, **kwargs: Any) -> None:
        super().__init__(fail_on_reject=False, **kwargs)
        self.decision = decision

    def execute(self, context: Context) -> Any:
        """Ask, unless there is nothing to ask about."""
        if not self.decision["promote"]:
            raise AirflowSkipException(f"nobody is asked: {self.decision['reason']}")
        return super().execute(context)
