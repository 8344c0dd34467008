"""Reading a training job in the spellings in which people hold one; `text.read_job` tells them apart."""
