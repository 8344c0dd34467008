"""Hooks: credentials out of Airflow connections."""
