"""A trainer as jobs of AI Platform had it: chief and workers compute gradients, parameter servers hold the model."""
