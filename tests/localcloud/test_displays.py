import io
import time

from rich.console import Console

from localcloud.airflow_api import TaskState
from localcloud.process import Identity
from localcloud.progress import UpProgress
from localcloud.run_display import RunDisplay
from localcloud.state import CloudState, ComponentState, Status
from localcloud.training_metrics import Progress


def _console(*, terminal: bool) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, force_terminal=terminal, width=120, highlight=False), text


def test_without_a_terminal_up_tells_each_change_once() -> None:
    console, text = _console(terminal=False)
    one = ComponentState("postgres", Status.STARTING, since=time.time())
    state = CloudState(Identity(1, 0.0), time.time(), components=[one, ComponentState("vertex")])
    with UpProgress(console) as progress:
        progress.show(state)
        progress.show(state)
        one.status, one.took = Status.HEALTHY, 0.7
        progress.show(state)
    lines = text.getvalue().splitlines()
    assert [line.split("] ")[1] for line in lines] == ["postgres: starting, 0 s", "postgres: healthy after 0.7 s"]


def test_a_terminal_sees_all_tasks_and_the_training() -> None:
    console, text = _console(terminal=True)
    tasks = [TaskState("stage", "success", 1, -1, "2026", 3.0), TaskState("train", "running", 2, 0, "2027", None)]
    with RunDisplay(console, "train_x run") as display:
        display.show(tasks, Progress(30, 60, 4.5, 900.0, 70.0, None))
    shown = text.getvalue()
    expected = ["success after 3 s", "train[0]", "running (try 2)", "step 30/60", "ETA 1:10"]
    assert [part for part in expected if part not in shown] == []


def test_without_a_terminal_a_run_tells_changes_and_now_and_then_the_training() -> None:
    console, text = _console(terminal=False)
    task = TaskState("train", "running", 1, -1, "2026", None)
    with RunDisplay(console, "train_x run") as display:
        for step in (1, 2, 3):
            display.show([task], Progress(step, 60, 4.5, 900.0, None, None))
    assert [line.split("] ")[1] for line in text.getvalue().splitlines()] == [
        "train: running",
        "step 1/60   loss 4.500   900 tokens/s",
    ]
