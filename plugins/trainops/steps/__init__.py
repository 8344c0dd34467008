"""What tasks do, without Airflow: each step takes its clients and its plan as arguments."""
