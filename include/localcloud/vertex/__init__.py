"""A stand-in for Vertex AI custom training: REST in front, real processes behind; see README.md beside this file."""
