"""Model FLOPs utilization: the arithmetic that the model needs, over what the GPUs could do.

As in the PaLM paper, appendix B (https://arxiv.org/abs/2204.02311): 6 N + 12 L H T floating-point operations a token,
with N parameters of matrices, L blocks of width H (heads times their width), and T tokens of context.
"""

from __future__ import annotations

import re
import resource
import sys
from typing import Any

import torch

_TENSOR = {
    # Dense bfloat16; data sheets print the double, with sparsity.
    "GB200": (2500e12, "https://www.nvidia.com/en-us/data-center/gb200-nvl72/"),
    "B200": (2250e12, "https://www.nvidia.com/en-us/data-center/dgx-b200/"),
    "H200": (989.5e12, "https://www.nvidia.com/en-us/data-center/h200/"),
    "H100 PCIe": (756.5e12, "https://www.nvidia.com/en-us/data-center/h100/"),
    "H100 NVL": (835.5e12, "https://www.nvidia.com/en-us/data-center/h100/"),
    "H100": (989.5e12, "https://www.nvidia.com/en-us/data-center/h100/"),
    "A100": (312e12, "https://www.nvidia.com/en-us/data-center/a100/"),
    "L4": (121e12, "https://www.nvidia.com/en-us/data-center/l4/"),
}
_SINGLE = {
    # float32: these train without bfloat16.
    "T4": (8.1e12, "https://www.nvidia.com/en-us/data-center/tesla-t4/"),
    "V100-SXM2": (15.7e12, "https://www.nvidia.com/en-us/data-center/v100/"),
    "V100-PCIE": (14e12, "https://www.nvidia.com/en-us/data-center/v100/"),
}
PEAKS = _TENSOR | _SINGLE
"""Part of a GPU's name -> most floating-point operations a second, in the type that the trainer computes in there, and
the source. The first that fits counts, so a longer name stands before a shorter one."""

_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")


def peak_flops(name: str) -> float | None:
    """Return the most floating-point operations a second of a GPU, by its name; None when it is not known."""
    if "MIG" in name.split():
        return None  # a slice of a GPU: its share is not in its name
    for part, (peak, _) in PEAKS.items():
        if re.search(rf"(?<![A-Za-z0-9]){re.escape(part)}(?![A-Za-z0-9])", name):
            return peak
    return None


def flops_per_token(model: Any, context: int) -> float | None:
    """Return the floating-point operations that training on one token needs; None where no formula is known.

    Of a mixture of experts a token meets only some parameters, and which ones no config says in one way; and a model
    without attention heads, or with different ones in each block, is none that the formula is about.
    """
    config = model.config
    try:
        blocks, width = config.num_hidden_layers, config.num_attention_heads * _head_width(config)
        experts = any(getattr(config, key, None) for key in _EXPERTS)
    except (AttributeError, TypeError, RuntimeError):
        return None
    if experts:
        return None
    tables = [module.weight for module in model.modules() if isinstance(module, torch.nn.Embedding)]
    output = model.get_output_embeddings()
    # Looking up a row costs nothing; a table that is the output layer as well is multiplied with there.
    looked_up = sum(weight.numel() for weight in tables if output is None or weight is not output.weight)
    matrices = sum(parameter.numel() for parameter in model.parameters()) - looked_up
    return float(6 * matrices + 12 * blocks * width * context)


def utilization(tokens_per_second: float, per_token: float | None, device: torch.device, replicas: int) -> float | None:
    """Return the model FLOPs utilization, from 0 to 1; None on CPUs and on GPUs that are not in the table."""
    peak = peak_flops(torch.cuda.get_device_name(device)) if device.type == "cuda" else None
    if peak is None or per_token is None:
        return None
    return tokens_per_second * per_token / (peak * replicas)


def peak_memory(device: torch.device) -> int:
    """Return the most bytes that this process held so far: of the GPU's memory, or of the machine's without a GPU."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    # Linux counts in KiB, macOS in bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _head_width(config: Any) -> int:
    return int(getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads)
