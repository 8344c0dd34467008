"""The Cloud Storage stand-in: fake-gcs-server behind a thin proxy that keeps preconditions, faults and a journal."""
