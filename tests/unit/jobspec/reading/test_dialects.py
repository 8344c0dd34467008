from __future__ import annotations

import pytest

from trainops.jobspec.reading.text import read_job

SUBMIT = "gcloud ai-platform jobs submit training"
MAKEFILE = f"""\
test:
\t@echo "it's $$1" | awk '{{print $$1}}'
submit: test
\t@{SUBMIT} ${{NAME}}_$$(date +%s) \\
\t\t--region=$(REGION) --job-dir gs://$(BUCKET)/jobs
REGION := us-east1
BUCKET = $(PROJECT)-jobs
PROJECT ?= "p"
NAME = job_$(shell whoami)
"""
MARKDOWN = f"""\
# Train it, as it's done

```sh
export BUCKET=p-jobs
```

```python
print("it's not read")
```

```console
$ {SUBMIT} job_`whoami` --region us-east1 \\
    --job-dir gs://$BUCKET/jobs
```
"""


@pytest.mark.parametrize(
    ("text", "name"),
    [(MAKEFILE, "job_$(whoami)_$(date +%s)"), (MARKDOWN, "job_`whoami`")],
    ids=["Makefile", "Markdown"],
)
def test_the_command_is_found_in_the_text_around_it(text: str, name: str) -> None:
    assert read_job(text, "file", str).fields == {
        "jobId": name, "trainingInput": {"region": "us-east1", "jobDir": "gs://p-jobs/jobs"},
    }  # fmt: skip
