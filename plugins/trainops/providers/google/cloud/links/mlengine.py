"""`airflow.providers.google.cloud.links.mlengine` as it was, for training jobs."""

from trainops.links.vertex import VertexJobLink as MLEngineJobDetailsLink

__all__ = ["MLEngineJobDetailsLink"]
