"""Triggers: what waits while a task is deferred."""
