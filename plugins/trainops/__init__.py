"""Trainops: train language models on Google Cloud from Apache Airflow."""

__version__ = "0.1.0"
