"""Exported models of each family load where there is nothing but transformers and torch, and give the same logits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch

from trainer import export as exporting
from trainer import training

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

PROMPT = "def f(x):\n    return x"
SCRIPT = """
import importlib.util, json, sys
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained(sys.argv[1])
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
ids = tokenizer(sys.argv[2], return_tensors="pt")["input_ids"]
with torch.no_grad():
    logits = model(ids).logits[0]
print(json.dumps({
    "alone": not any(importlib.util.find_spec(name) for name in ("trainer", "google", "accelerate")),
    "family": model.config.model_type,
    "ids": ids[0].tolist(),
    "logits": logits.tolist(),
    "written": tokenizer.decode(model.generate(ids, max_new_tokens=4, do_sample=False)[0]),
}))
"""


@pytest.fixture(scope="module")
def clean_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment that has transformers and torch, in the versions of this one."""
    folder = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=300)
    python = folder / "bin" / "python"
    wanted = [f"{name}=={version(name)}" for name in ("transformers", "torch")]
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
    done = subprocess.run(install, capture_output=True, text=True, check=False, timeout=1200)
    assert done.returncode == 0, done.stderr
    return python


@pytest.mark.parametrize("family", ["llama", "qwen2", "gpt2"])
def test_an_exported_model_gives_the_logits_of_training_in_a_clean_environment(
    family: str, clean_python: Path, train: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[Any] = []
    export = exporting.export

    def keep(files: Any, job: Any, model: Any) -> dict[str, Any]:
        trained.append(model)
        return export(files, job, model)

    monkeypatch.setattr(training, "export", keep)
    assert train(tmp_path, model={"family": family}) == 0

    command = [str(clean_python), "-I", "-W", "error::FutureWarning", "-c", SCRIPT, str(tmp_path / "model"), PROMPT]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["alone"], found["family"]) == (True, family)
    assert found["written"].startswith(PROMPT)
    with torch.no_grad():
        expected = trained[0].eval()(torch.tensor([found["ids"]])).logits[0]
    difference = float((torch.tensor(found["logits"]) - expected).abs().max())
    print(f"{family}: the largest difference between logits is {difference:.3g}")
    assert difference <= 1e-6
