"""The stand-in for Vertex AI and the translation know the same prebuilt images; neither imports the other."""

from __future__ import annotations

from localcloud.vertex.executor_images import executor_image_problems, image_names
from trainops.jobspec.images import prebuilt_name
from trainops.jobspec.tables.prebuilt_images import PREBUILT_IMAGES
from trainops.jobspec.tables.runtimes import image_uri


def test_both_know_the_same_images() -> None:
    assert image_names() == set(PREBUILT_IMAGES)


def test_both_say_of_every_uri_whether_it_runs_packages() -> None:
    good = [image_uri(name).replace("us-", f"{host}-", 1) for name in PREBUILT_IMAGES for host in ("us", "asia")]
    bad = ["trainer:1", image_uri("pytorch-gpu.2-4.py310").replace("latest", "1"), image_uri("pytorch-gpu.9-9")]
    for uri in (*good, *bad):
        assert (list(executor_image_problems(uri, "field")) == []) == (prebuilt_name(uri) is not None) == (uri in good)
