"""Operators: tasks that submit training jobs."""
