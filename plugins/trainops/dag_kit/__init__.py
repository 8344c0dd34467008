"""What DAG files are wired from: parameters, defaults, tasks."""
