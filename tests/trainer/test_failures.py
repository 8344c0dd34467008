from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from trainer.errors import StorageError, TrainerError, UserError
from trainer.failures import guarded

Train = Callable[..., int]


def too_much_for_torch() -> int:
    torch.empty(10**15)
    return 0


def too_much_for_numpy() -> int:
    np.empty(10**15)
    return 0


def raising(error: BaseException) -> Callable[[], int]:
    def program() -> int:
        raise error

    return program


KINDS: list[tuple[str, Callable[[], int], int, str]] = [
    ("done", lambda: 0, 0, ""),
    ("a fault of the input", raising(UserError("trainer.steps: got 0")), 2, "trainer.steps: got 0"),
    ("a fault told in lines", raising(UserError("trainer.model: a\n    b")), 2, "trainer.model: a b"),
    ("a lost replica", raising(TrainerError("another replica was lost")), 1, "another replica was lost"),
    ("storage that is away", raising(StorageError("gs://my-bucket/a: 503")), 1, "gs://my-bucket/a: 503"),
    ("storage that refuses", raising(StorageError("gs://my-bucket/a: 403", refused=True)), 2, "gs://my-bucket/a: 403"),
    ("memory of a GPU", raising(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")), 2, "2 GiB"),
    ("memory of the machine, for torch", too_much_for_torch, 2, "lower trainer.batch_size or trainer.model.context"),
    ("memory of the machine, for numpy", too_much_for_numpy, 2, "lower trainer.batch_size or trainer.model.context"),
    ("memory of a GPU, for CUDA", raising(torch.AcceleratorError("CUDA error: out of memory")), 2, "lower trainer"),
    (
        "memory of a GPU, for a library of CUDA",
        raising(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")),
        2,
        "lower trainer.batch_size",
    ),
    ("memory of a GPU, for NCCL", raising(RuntimeError("NCCL error: Cuda failure 2 'out of memory'")), 2, "lower"),
    ("a broken GPU", raising(torch.AcceleratorError("CUDA error: uncorrectable ECC error")), 1, "ECC"),
    (
        "no such file",
        raising(FileNotFoundError(errno.ENOENT, "No such file or directory", "/a")),
        2,
        "/a: No such file",
    ),
    ("no permission", raising(PermissionError(errno.EACCES, "Permission denied", "/a")), 2, "/a: Permission denied"),
    ("a full disk", raising(OSError(errno.ENOSPC, "No space left on device", "/a")), 1, "/a: No space left"),
    ("a broken connection", raising(ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")), 1, "reset"),
    ("a person at the keyboard", raising(KeyboardInterrupt()), 1, "goes on from the newest checkpoint"),
]


@pytest.mark.parametrize(("program", "code", "told"), [kind[1:] for kind in KINDS], ids=[kind[0] for kind in KINDS])
def test_every_kind_of_failure_ends_with_its_exit_code_and_one_line(
    program: Callable[[], int], code: int, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(program) == code

    shown = capsys.readouterr().err
    assert told in shown
    assert len(shown.splitlines()) == (1 if code else 0)
    assert shown.startswith("error: ") or not code


def test_a_fault_of_the_trainer_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        guarded(raising(ZeroDivisionError("division by zero")))


def test_a_model_too_large_for_the_machine_says_what_to_lower(
    train: Train, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(tmp_path, model={"intermediate_size": 10**12}) == 2

    told = capsys.readouterr().err
    assert told.startswith("error: out of memory: ")
    assert "lower trainer.batch_size or trainer.model.context, choose a smaller model" in told


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "plan.json: expected a mapping with the keys tokenizer and trainer, got []"),
        ("{", "plan.json: not JSON"),
        ('{"trainer": 3}', "plan.json: trainer: expected a mapping, got 3"),
    ],
)
def test_a_plan_that_is_none_is_refused(
    content: str, message: str, tokens: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from trainer.task import main

    plan = tmp_path / "plan.json"
    plan.write_text(content)

    assert main(["--config", str(plan), "--tokens", tokens, "--job-dir", str(tmp_path / "job")]) == 2

    assert message in capsys.readouterr().err


@pytest.mark.parametrize("content", ["[]", "{}", '{"vocab_size": 400}'])
def test_a_manifest_of_something_else_is_refused(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from trainer.task import main

    (tmp_path / "manifest.json").write_text(content)

    assert main(["--tokens", str(tmp_path), "--job-dir", str(tmp_path / "job")]) == 2

    assert "not a manifest of tokens: it lacks" in capsys.readouterr().err


def test_a_job_folder_that_cannot_be_one_is_named(
    train: Train, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")

    assert train(tmp_path / "file" / "job") == 2

    assert "name a place that the job may read and write" in capsys.readouterr().err
