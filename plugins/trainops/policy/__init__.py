"""Decisions as pure functions: no clock, no network, no files; everything they need is handed in."""
