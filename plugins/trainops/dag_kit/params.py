"""The trigger form, generated from the model that checks the conf: the two can never differ."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param

from trainops.config.conf import RunConf


def conf_params() -> dict[str, Param]:
    """One Param per key of `RunConf`; all are optional, and absent means what the experiment says."""
    return {name: _param(schema) for name, schema in RunConf.model_json_schema()["properties"].items()}


def _param(schema: dict[str, Any]) -> Param:
    """A Param of a nullable field: pydantic's `anyOf [types, null]`, in the form that Airflow's UI draws.

    Of several types the first one is what the form shows; its limits are those of the Param.
    """
    described = {
        key: value for key, value in schema.items() if key not in {"anyOf", "default", "examples", "description"}
    }
    kinds = [option for option in schema["anyOf"] if option["type"] != "null"]
    kind = kinds[0]
    limits = {key: value for key, value in kind.items() if key not in {"type", "enum"}}
    if "enum" in kind:
        limits["enum"] = [None, *kind["enum"]]
    else:
        limits["examples"] = schema.get("examples", [])
    return Param(
        None, type=["null", *(option["type"] for option in kinds)], description=_text(schema), **described, **limits
    )


def _text(schema: dict[str, Any]) -> str:
    examples = ", ".join(str(item) for item in schema.get("examples", []))
    return f"{schema['description']} For example: {examples}." if examples else str(schema["description"])
