"""`airflow.providers.google.cloud.operators.mlengine` as it was: change the first word and the DAG file runs."""

from trainops.operators import mlengine
from trainops.operators.cancel_job import MLEngineTrainingCancelJobOperator

__all__ = ["MLEngineStartTrainingJobOperator", "MLEngineTrainingCancelJobOperator", "MLEngineTrainingOperator"]


class MLEngineStartTrainingJobOperator(mlengine.MLEngineStartTrainingJobOperator):
    """Waits for the job's end, as the Google provider's did; `wait=False` leaves that to a TrainingJobSensor."""

    waits = True


MLEngineTrainingOperator = MLEngineStartTrainingJobOperator
"""The name before Airflow 2."""
