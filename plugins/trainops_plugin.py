"""The only plugin file: it tells Airflow of the links that task pages show, and of the timetable of experiments."""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from trainops.dag_kit.timetable import ExperimentTimetable
from trainops.links.vertex import VertexJobLink


class TrainopsPlugin(AirflowPlugin):
    """Trainops inside Airflow."""

    name = "trainops"
    timetables = [ExperimentTimetable]  # ruff: ignore[mutable-class-default] - the base class declares it so
    operator_extra_links = [VertexJobLink()]  # ruff: ignore[mutable-class-default]
