"""The trainer: trains a language model on one machine or many, and resumes where it was stopped."""

__version__ = "0.1.0"
