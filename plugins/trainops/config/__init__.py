"""What users write: experiments, datasets, GPU pools, the conf of a run, and the plan that they make together."""
