"""Stand-ins for Google Cloud and a whole Airflow, on loopback: `python -m localcloud up`."""
