"""`airflow.providers.google.cloud.operators.mlengine` as it was: change the first word and the DAG file runs."""

from trainops.operators.mlengine import MLEngineStartTrainingJobOperator

__all__ = ["MLEngineStartTrainingJobOperator"]
