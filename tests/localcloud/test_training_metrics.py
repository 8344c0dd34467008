import json

from localcloud.training_metrics import parse_progress

LINE = {"step": 10, "steps": 600, "loss": 6.1, "tokens_per_second": 9000.0, "remaining_seconds": 130.0}


def test_the_last_loss_and_the_last_evaluation_are_shown() -> None:
    lines = [LINE, {"step": 10, "eval_loss": 5.5}, LINE | {"step": 20, "loss": 5.0, "remaining_seconds": 65}]
    progress = parse_progress("\n".join(map(json.dumps, lines)))
    assert str(progress) == "step 20/600   loss 5.000   9,000 tokens/s   evaluation loss 5.500   ETA 1:05"


def test_half_a_line_and_other_lines_are_passed_over() -> None:
    progress = parse_progress(json.dumps(LINE) + '\n[1]\n{"step": 20, "lo')
    assert progress is not None
    assert progress.step == 10


def test_no_loss_is_no_progress() -> None:
    assert parse_progress("") is None
    assert parse_progress('{"step": 0, "eval_loss": 7.7}') is None
