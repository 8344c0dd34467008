"""AI Platform Training jobs, read strictly and translated into Vertex AI custom jobs."""
