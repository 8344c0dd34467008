"""Reduction Server in place of parameter servers, for jobs that reduce gradients over NCCL.

Source, as of 2026-08-22:
https://docs.cloud.google.com/gemini-enterprise-agent-platform/machine-learning/training/distributed-training
"""

from __future__ import annotations

from typing import Any

from trainops.jobspec.notes import Notebook
from trainops.jobspec.pools import Pool
from trainops.jobspec.training_input import TrainingInput

_IMAGE = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"
_POOL = 2
_KEY = "vertex.reductionServer"


def replaces(pool: Pool, spec: TrainingInput) -> bool:
    """Whether Reduction Server runs in this pool."""
    return pool.index == _POOL and spec.vertex.reduction_server is True


def check(spec: TrainingInput, pools: list[Pool], notebook: Notebook) -> None:
    """Refuse Reduction Server where it cannot work: no pool for it, a GPU in it, or no GPU in front of it."""
    wanted = spec.vertex.reduction_server
    if wanted is None:
        return
    if not wanted:
        notebook.mapped(_KEY, wanted, "", "no Reduction Server")
        return
    by_index = {pool.index: pool for pool in pools}
    servers, workers = by_index.get(_POOL), by_index.get(1)
    if servers is None:
        raise notebook.error(_KEY, "there are no parameter servers to replace", next_step="set parameterServerCount")
    if servers.equipment.accelerator is not None:
        raise notebook.error(
            "parameterServerConfig.acceleratorConfig", "Reduction Server takes no accelerator", next_step="leave it out"
        )
    if workers is None or any(by_index[index].equipment.image_kind != "gpu" for index in (0, 1)):
        raise notebook.error(_KEY, "master and workers need GPUs", next_step="set their acceleratorConfig")


def program(pool: Pool, notebook: Notebook) -> dict[str, Any]:
    """Return the task of the pool; its image and arguments are Google's."""
    target = f"{pool.target}.containerSpec.imageUri"
    text = "runs in place of parameter servers; n1-highcpu-16 is recommended for it"
    notebook.mapped(_KEY, True, target, text)
    config = pool.config
    for field, value in (
        ("imageUri", config.image_uri),
        ("containerCommand", config.container_command),
        ("containerArgs", config.container_args),
        ("tpuTfVersion", config.tpu_tf_version),
    ):
        if value is not None:
            notebook.changed(
                f"{pool.config_key}.{field}", value, "", "not sent: Reduction Server has an image of its own"
            )
    return {"containerSpec": {"imageUri": _IMAGE}}
