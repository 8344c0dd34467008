"""The summary of a run, in plain lines, from what `trainops runs show --output json` tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def summary_lines(run: Mapping[str, Any], endpoints: Mapping[str, Any]) -> list[str]:
    """Say what came out of a run; what is not known is said to be so."""
    result, decision = run.get("result") or {}, run.get("decision") or {}
    jobs = [f"{job.get('task')} {job.get('job_name')} ({job.get('state')})" for job in run.get("jobs") or []]
    before, after = _number(result.get("eval_loss_before")), _number(result.get("eval_loss"))
    lines = {
        "run key": _known(run.get("run_key")),
        "jobs": ("\n" + " " * 24).join(jobs) or "unknown",
        "replicas": _known(result.get("replicas")),
        "steps": f"{_known(result.get('step'))} of {_known(result.get('steps'))}",
        "tokens/s": _number(result.get("tokens_per_second"), ",.0f"),
        "evaluation loss": f"{before} before, {after} after",
        "unigram entropy": f"{_number(result.get('unigram_entropy'))} (nats per token of the held-out text)",
        "gate": _gate(decision),
        "promoted model": run.get("promoted") or "none",
        "a generated sentence": repr(result["sample"]) if result.get("sample") else "unknown",
        "Airflow": f"{endpoints['airflow']}   login {endpoints['airflow_user']} / {endpoints['airflow_password']}",
    }
    return ["", *(f"  {name:<22}{value}" for name, value in lines.items())]


def _gate(decision: Mapping[str, Any]) -> str:
    if "promote" not in decision:
        return "unknown"
    return f"{'promote' if decision['promote'] else 'do not promote'}: {decision.get('reason', 'no reason given')}"


def _number(value: Any, form: str = ".3f") -> str:
    return format(value, form) if isinstance(value, int | float) else "unknown"


def _known(value: Any) -> str:
    return "unknown" if value is None else str(value)
