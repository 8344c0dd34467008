"""Replays a trace of jobs under one policy or another; `benchmarks.queue_replay` is the command."""
