from __future__ import annotations

import pytest

from localcloud.vertex.executor_images import executor_image_problems

REPOSITORY = "docker.pkg.dev/vertex-ai/training"
FIELD = "job_spec.worker_pool_specs[0].python_package_spec.executor_image_uri"


@pytest.mark.parametrize("host", ["us", "europe", "asia"])
@pytest.mark.parametrize("tag", ["", ":latest"])
def test_a_prebuilt_image_runs_packages(host: str, tag: str) -> None:
    assert list(executor_image_problems(f"{host}-{REPOSITORY}/pytorch-gpu.2-4.py310{tag}", FIELD)) == []


@pytest.mark.parametrize(
    "image",
    [
        "us-central1-docker.pkg.dev/my-project/trainers/torch:3",
        f"us-{REPOSITORY}/pytorch-gpu.2-4.py310:20260101",
        f"us-{REPOSITORY}/pytorch-gpu.9-9.py310:latest",
        f"me-{REPOSITORY}/pytorch-gpu.2-4.py310:latest",
        "gcr.io/cloud-aiplatform/training/pytorch-gpu.1-7:latest",
    ],
)
def test_another_image_is_refused_by_name(image: str) -> None:
    [(field, text)] = executor_image_problems(image, FIELD)
    assert field == FIELD
    assert f'"{image}" is not supported' in text


@pytest.mark.parametrize("image", [None, ""])
def test_no_image_is_refused(image: str | None) -> None:
    assert list(executor_image_problems(image, FIELD)) == [(FIELD, "Required field is not set.")]
