"""`airflow.providers.google.cloud.hooks.mlengine` as it was, for training jobs."""

from trainops.hooks.mlengine import MLEngineHook

__all__ = ["MLEngineHook"]
