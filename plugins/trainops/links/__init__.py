"""Links from a task's page to where its job can be seen."""
