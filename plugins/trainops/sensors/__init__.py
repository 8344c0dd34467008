"""Sensors: tasks that wait for a run."""
