"""The module path of the Google provider, for DAG files that were written for it."""
