from localcloud.demo_summary import summary_lines

ENDPOINTS = {"airflow": "http://127.0.0.1:8080", "airflow_user": "admin", "airflow_password": "word"}


def test_the_summary_tells_everything_that_came_out() -> None:
    run = {
        "run_key": "stdlib_tiny-20261130t0230-0a1b2c3d",
        "jobs": [{"task": "submit_training", "job_name": "projects/1/customJobs/7", "state": "JOB_STATE_SUCCEEDED"}],
        "result": {"replicas": 2, "step": 600, "steps": 600, "tokens_per_second": 9000.4, "eval_loss_before": 7.7,
                   "eval_loss": 3.1, "unigram_entropy": 5.9, "sample": "def f():\n    pass"},
        "decision": {"promote": True, "reason": "the channel was empty"},
        "promoted": "gs://local-llm-models/stdlib-tiny/versions/x",
    }  # fmt: skip
    text = "\n".join(summary_lines(run, ENDPOINTS))
    expected = [
        "stdlib_tiny-20261130t0230-0a1b2c3d", "submit_training projects/1/customJobs/7", "600 of 600", "9,000",
        "7.700 before, 3.100 after", "5.900", "promote: the channel was empty", "gs://local-llm-models/",
        r"def f():\n    pass", "login admin / word",
    ]  # fmt: skip
    assert [part for part in expected if part not in text] == []


def test_what_is_missing_is_said_to_be_unknown() -> None:
    text = "\n".join(summary_lines({"run_key": "k", "result": None, "decision": None, "promoted": None}, ENDPOINTS))
    assert "unknown before, unknown after" in text
    assert "promoted model        none" in text
