from __future__ import annotations

from typing import Any

import pytest
import torch

from trainer.config import ModelConfig
from trainer.model import build_model
from trainer.utilization import PEAKS, flops_per_token, peak_flops, peak_memory, utilization


@pytest.mark.parametrize(
    ("name", "tera"),
    [
        ("NVIDIA H200", 989.5),
        ("NVIDIA H100 80GB HBM3", 989.5),
        ("NVIDIA H100 PCIe", 756.5),
        ("NVIDIA H100 NVL", 835.5),
        ("NVIDIA A100-SXM4-40GB", 312),
        ("NVIDIA A100-SXM4-80GB", 312),
        ("NVIDIA B200", 2250),
        ("NVIDIA GB200", 2500),
        ("NVIDIA L4", 121),
        ("Tesla T4", 8.1),
        ("Tesla V100-SXM2-16GB", 15.7),
    ],
)
def test_the_peak_of_a_gpu_is_known_by_its_name(name: str, tera: float) -> None:
    assert peak_flops(name) == pytest.approx(tera * 1e12)


@pytest.mark.parametrize(
    "name", ["NVIDIA L40S", "NVIDIA A10", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "AMD Instinct MI300X"]
)
def test_the_peak_of_another_gpu_is_not_guessed(name: str) -> None:
    assert peak_flops(name) is None


def test_every_peak_has_a_source() -> None:
    assert all(source.startswith("https://") for _, source in PEAKS.values())


@pytest.mark.parametrize(
    ("changes", "parameters"),
    [
        # A block of llama: four matrices of 32 x 32, three of 32 x 96, two norms; then a norm, and the output layer.
        ({"family": "llama", "tie_embeddings": True}, 2 * (4 * 32 * 32 + 3 * 32 * 96 + 2 * 32) + 32 + 300 * 32),
        ({"family": "llama", "tie_embeddings": False}, 2 * (4 * 32 * 32 + 3 * 32 * 96 + 2 * 32) + 32 + 300 * 32),
        # A block of gpt2: 12 matrices of 32 x 32 and their 9 vectors, two norms of two vectors; then one more of these.
        ({"family": "gpt2"}, 2 * (12 * 32 * 32 + 9 * 32 + 4 * 32) + 2 * 32 + 300 * 32),
    ],
    ids=["tied", "untied", "gpt2"],
)
def test_a_token_needs_six_operations_a_parameter_and_its_attention(changes: dict[str, Any], parameters: int) -> None:
    config = ModelConfig(hidden_size=32, layers=2, heads=2, context=16, **changes)
    model = build_model(config, vocab_size=300, end_of_text=0, seed=0)

    assert flops_per_token(model, context=16) == 6 * parameters + 12 * 2 * 32 * 16


def test_of_a_mixture_of_experts_and_on_a_cpu_it_is_not_known() -> None:
    config = ModelConfig(
        family="mixtral", hidden_size=32, layers=1, heads=2, context=16, settings={"num_local_experts": 2}
    )

    assert flops_per_token(build_model(config, vocab_size=300, end_of_text=0, seed=0), context=16) is None
    assert utilization(1000.0, 1e9, torch.device("cpu"), 1) is None


def test_of_a_model_without_attention_heads_it_is_not_known() -> None:
    config = ModelConfig(family="mamba", hidden_size=32, layers=1, heads=2, context=16)

    assert flops_per_token(build_model(config, vocab_size=300, end_of_text=0, seed=0), context=16) is None


def test_the_utilization_is_of_all_gpus_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA A100-SXM4-40GB")

    assert utilization(312_000.0, 1e9, torch.device("cuda", 0), 2) == pytest.approx(0.5)


def test_memory_is_counted_in_bytes() -> None:
    before = peak_memory(torch.device("cpu"))
    block = torch.ones(100_000_000, dtype=torch.uint8)

    # What was in use once may be free again and serve the block, so that only a part of it shows.
    assert before <= peak_memory(torch.device("cpu")) <= before + 2 * block.numel()
    assert 50_000_000 < before < 100_000_000_000
