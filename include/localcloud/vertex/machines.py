"""What fits on which machine type."""

from __future__ import annotations

import json
from pathlib import Path

_TABLE = json.loads(Path(__file__).with_name("machine_types.json").read_text(encoding="utf-8"))
_FITS: dict[str, dict[str, list[int]]] = _TABLE["machines"]
_REQUIRED: tuple[str, ...] = tuple(_TABLE["accelerator_required"])
_TPU: frozenset[str] = frozenset(_TABLE["tpu_machines"])


def machine_problem(machine: str, accelerator: str | None, count: int) -> tuple[str, str] | None:
    """Return field of the machine spec and message of what is wrong with it, or None.

    :param accelerator: None when the spec names none; `count` is 0 then.
    """
    if machine in _TPU:
        return ("machine_type", f'TPU machine type "{machine}" is not supported by the local stand-in.')
    if machine not in _FITS:
        return ("machine_type", f'Machine type "{machine}" is not supported.')
    if accelerator is None:
        needed = machine.startswith(_REQUIRED)
        return ("accelerator_type", f'Machine type "{machine}" requires accelerators.') if needed else None
    counts = _FITS[machine].get(accelerator)
    if counts is None:
        return ("accelerator_type", f'Accelerator "{accelerator}" is not supported for machine type "{machine}"')
    if count not in counts:
        allowed = ", ".join(str(item) for item in counts)
        text = f'Accelerator count {count} of "{accelerator}" is not supported for machine type "{machine}"'
        return ("accelerator_count", f"{text}; supported counts: {allowed}.")
    return None
