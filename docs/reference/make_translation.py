"""Write `translation.md`, the page of what becomes of every field, machine and image, from the tables of `jobspec`.

From the project's folder: `.venv/bin/python docs/reference/make_translation.py`. A test fails when the page is stale.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from trainops.jobspec.tables import machines, substitutes
from trainops.jobspec.tables.fields import FIELDS, FieldRow
from trainops.jobspec.tables.prebuilt_images import PREBUILT_IMAGES, REPOSITORY
from trainops.jobspec.tables.runtimes import RUNTIMES
from trainops.jobspec.tables.scale_tiers import LEGACY_MACHINES, SCALE_TIERS, MachineSetup
from trainops.jobspec.vertex_extras import VertexExtras

PAGE = Path(__file__).with_name("translation.md")

HEAD = """\
# From TrainingInput to Vertex AI

<!-- Made by docs/reference/make_translation.py from trainops.jobspec.tables: change these, and run the script. -->

What becomes of a job of AI Platform Training on Vertex AI. Each field is *mapped* (sent with the same meaning),
*defaulted* (not given, or not whole, and a value is taken), *changed* (means or does something else, or is not sent),
or refused with an error that names it. An unknown field, or a value of the wrong type, is always refused, as is a value
beside another that it excludes. Where a table says *substitute*, `substitute` in `environments/*.yaml` decides: `allow`
takes it, `warn` takes it and notes it as changed, `refuse` refuses the job and names the alternatives.
"""

_SECTIONS = {
    "TrainingInput": "The job.",
    "ReplicaConfig": "masterConfig, workerConfig, parameterServerConfig and evaluatorConfig.",
    "AcceleratorConfig": "acceleratorConfig of a ReplicaConfig.",
    "DiskConfig": "diskConfig of a ReplicaConfig.",
    "Scheduling": "scheduling of the job.",
    "EncryptionConfig": "encryptionConfig of the job.",
    "HyperparameterSpec": "hyperparameters of the job; targets are fields of the HyperparameterTuningJob.",
    "ParameterSpec": "params of a HyperparameterSpec.",
}


def page() -> str:
    """Return the text of the page."""
    sections = [
        *(_fields(message, rows) for message, rows in FIELDS.items()),
        _extras(),
        _tiers(),
        _legacy_machines(),
        _machines(),
        _tpus(),
        _substitutes(),
        _runtimes(),
    ]
    return "\n".join([HEAD, *sections])


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}", file=sys.stderr)
    return 0


def _fields(message: str, rows: dict[str, FieldRow]) -> str:
    lines = (
        (
            _code([field]),
            _code(row.targets) or "not sent",
            ", ".join(row.verdicts) or "refused",
            row.text,
            row.refused or "never",
        )
        for field, row in rows.items()
    )
    head = ("field", "becomes", "noted as", "what and why", "refused when, and what to do")
    return _section(message, _SECTIONS[message], head, lines)


def _extras() -> str:
    rows = (
        (_code([field.alias or name]), field.description or "") for name, field in VertexExtras.model_fields.items()
    )
    text = (
        "Under the key `vertex` of a job: what AI Platform has no word for. Each goes to the Vertex field of its name."
    )
    return _section("What only Vertex AI has", text, ("field", "what it does"), rows)


def _tiers() -> str:
    rows = (
        (_code([tier]), pool.role, str(pool.replicas), _setup(pool.setup))
        for tier, pools in SCALE_TIERS.items()
        for pool in pools
    )
    text = "The machines that a fixed tier had; retired ones have a substitute. `CUSTOM` takes types and counts."
    return _section("Scale tiers", text, ("tier", "pool", "replicas", "machine of each"), rows)


def _legacy_machines() -> str:
    rows = [(_code([name]), _setup(setup)) for name, setup in LEGACY_MACHINES.items()]
    rows += [(_code([name]), f"never a machine; substitute {_code([meant])}") for name, meant in _misread()]
    return _section("Legacy machines", "What the names stood for.", ("name", "machine"), rows)


def _misread() -> Iterable[tuple[str, str]]:
    return substitutes.MISREAD_MACHINES.items()


def _machines() -> str:
    rows = (
        (_code([machine]), _accelerators(machine) or "none")
        for machine in machines.MACHINE_TYPES
        if machine not in machines.TPU_TOPOLOGIES
    )
    text = (
        "Every machine type of Vertex AI training, with the accelerators that fit it and how many. N1 machines take "
        "them by choice; the others that have any come with theirs."
    )
    return _section("Machines and accelerators", text, ("machine", "accelerators, and their counts"), rows)


def _accelerators(machine: str) -> str:
    if machine == "cloud-tpu":
        return f"{_code(machines.CLOUD_TPU_TYPES)}: 8, or a multiple of 32"
    found = []
    for kind, counts in machines.GPU_COUNTS.get(machine, {}).items():
        notes = [machines.SCARCE_GPUS.get(kind, ""), "has a substitute" if kind in substitutes.RETIRED_GPUS else ""]
        extra = "".join(f" ({note})" for note in notes if note)
        found.append(f"{_code([kind])}{extra}: {_listed(counts)}")
    return "; ".join(found)


def _tpus() -> str:
    rows = ((_code([machine]), _code(topologies)) for machine, topologies in machines.TPU_TOPOLOGIES.items())
    text = (
        "Machines with a topology, `vertex.tpuTopology`, in place of an accelerator type; one replica is a whole slice."
    )
    return _section("TPU machines", text, ("machine", "topologies"), rows)


def _substitutes() -> str:
    rows = [("machine", name, other, "") for name, other in substitutes.RETIRED_MACHINES.items()]
    rows += [
        ("GPU", name, ", else ".join(others), substitutes.RETIRED_GPU_REASONS[name])
        for name, others in substitutes.RETIRED_GPUS.items()
    ]
    rows += [
        ("machine with GPU", f"{machine} + {count} x {kind}", f"{room} + {count} x {kind}", "this count does not fit")
        for (machine, kind, count), room in substitutes.ROOMS_FOR_GPU.items()
    ]
    for what, table in (
        ("runtime", substitutes.RETIRED_RUNTIMES),
        ("runtime on a TPU", substitutes.TPU_RUNTIMES),
        ("Python of runtimes up to 1.15", substitutes.RETIRED_PYTHONS),
    ):
        rows += [(what, old, new, "no image") for old, new in table.items()]
    text = "What is retired or impossible, and what stands in for it, in the same number."
    return _section("Substitutes", text, ("what", "in the job", "substitute", "why"), rows)


def _runtimes() -> str:
    rows = (
        (runtime, kind, python, _code([name]), PREBUILT_IMAGES[name].available_until)
        for runtime, kinds in RUNTIMES.items()
        for kind, names in kinds.items()
        for python, name in names.items()
    )
    text = (
        f"Images of `{REPOSITORY}`, tag `latest`, by the TensorFlow that a runtime version has. After its last day "
        "Vertex AI may refuse an image: set `image` in the environment to be sure."
    )
    head = ("runtimeVersion", "machines", "pythonVersion", "image", "last day")
    return _section("Runtime images", text, head, rows)


def _section(name: str, text: str, head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(cells)} |" for cells in (head, ("---",) * len(head), *rows)]
    return "\n".join([f"## {name}", "", text, "", *lines, ""])


def _setup(setup: MachineSetup) -> str:
    return _code([setup.machine]) + (f" + {setup.accelerator}" if setup.accelerator else "")


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _listed(counts: Iterable[int]) -> str:
    return ", ".join(str(count) for count in counts)


if __name__ == "__main__":
    raise SystemExit(main())
