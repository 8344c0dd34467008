"""Rules for what a worker pool runs."""

from __future__ import annotations

from tests.localcloud.vertex.rules.changes import (
    AT,
    GONE,
    PACKAGE,
    POOL,
    POOLS,
    PYTHON,
    REQUIRED,
    URI,
    WHEEL,
    Bad,
    Rule,
    env,
)

RULES: tuple[Rule, ...] = (
    Rule(
        "WorkerPoolSpec.task",
        "containerSpec XOR pythonPackageSpec",
        bad=(
            Bad({PACKAGE: GONE}, f"{AT}.task", "Either `container_spec` or `python_package_spec` must be set."),
            Bad({f"{POOL}.containerSpec": {"imageUri": "i"}}, f"custom_job.{AT}", "field 'task' is already set"),
            Bad({PACKAGE: GONE, f"{POOL}.containerSpec": {}}, f"{AT}.container_spec.image_uri", REQUIRED),
        ),
        good=({PACKAGE: GONE, f"{POOL}.containerSpec": {"imageUri": "gcr.io/my-project/i"}}, {}),
    ),
    Rule(
        "PythonPackageSpec.executorImageUri",
        "required; must be from the prebuilt list; tag latest",
        bad=(Bad({f"{PACKAGE}.executorImageUri": GONE}, f"{PYTHON}.executor_image_uri", REQUIRED),),
        good=({},),
        elsewhere=("test_executor_images.py",),
    ),
    Rule(
        "PythonPackageSpec.packageUris",
        "required; at most 100; .tar.gz or .whl, pip-installed on each replica",
        bad=(
            Bad({f"{PACKAGE}.packageUris": GONE}, f"{PYTHON}.package_uris", REQUIRED),
            Bad({f"{PACKAGE}.packageUris": []}, f"{PYTHON}.package_uris", REQUIRED),
            Bad({f"{PACKAGE}.packageUris": [WHEEL] * 101}, f"{PYTHON}.package_uris", "At most 100"),
            Bad({f"{PACKAGE}.packageUris": ["gs://my-bucket/p.zip"]}, f"{PYTHON}.package_uris[0]", URI),
            Bad({f"{PACKAGE}.packageUris": [WHEEL, "gs://my-bucket/p.tar"]}, f"{PYTHON}.package_uris[1]", URI),
            Bad({f"{PACKAGE}.packageUris": ["/p.whl"]}, f"{PYTHON}.package_uris[0]", URI),
            Bad({f"{PACKAGE}.packageUris": ["gs://p.whl"]}, f"{PYTHON}.package_uris[0]", URI),
        ),
        good=({f"{PACKAGE}.packageUris": [WHEEL] * 100}, {f"{PACKAGE}.packageUris": ["gs://my-bucket/a/p.tar.gz"]}),
        elsewhere=("test_processes.py::test_packages_are_installed_and_the_module_is_run",),
    ),
    Rule(
        "PythonPackageSpec.pythonModule",
        "required; run as python -m",
        bad=(
            Bad({f"{PACKAGE}.pythonModule": GONE}, f"{PYTHON}.python_module", REQUIRED),
            Bad({f"{PACKAGE}.pythonModule": ""}, f"{PYTHON}.python_module", REQUIRED),
        ),
        good=({f"{PACKAGE}.pythonModule": "trainer.task"},),
        elsewhere=("test_processes.py::test_packages_are_installed_and_the_module_is_run",),
    ),
    Rule(
        "EnvVar",
        "at most 100 per spec; name a C identifier; $(VAR) expansion from earlier variables, $$(VAR) escapes; names "
        "must be unique (message seen on another resource)",
        bad=(
            Bad(env(*(f"A{n}" for n in range(101))), f"{PYTHON}.env", "At most 100 environment variables"),
            Bad(env("a-b"), f"{PYTHON}.env[0].name", "C identifier"),
            Bad(env("1A"), f"{PYTHON}.env[0].name", "C identifier"),
            Bad(env("É"), f"{PYTHON}.env[0].name", "C identifier"),
            Bad(env(""), f"{PYTHON}.env[0].name", "C identifier"),
            Bad(env("A", "B", "A"), f"{PYTHON}.env[2].name", 'name "A" is not unique'),
            Bad(
                {f"{POOLS}.2.containerSpec.env": [{"name": "A B"}]},
                "job_spec.worker_pool_specs[2].container_spec.env[0].name",
                "C identifier",
            ),
        ),
        good=(env(*(f"A{n}" for n in range(100))), env("_a1", "A", "a"), env()),
        elsewhere=("test_processes.py::test_every_replica_gets_its_environment",),
    ),
    Rule(
        "args",
        "all arguments combined at most 100,000 characters (console text)",
        bad=(
            Bad({f"{PACKAGE}.args": ["x" * 50_000, "x" * 50_001]}, f"{PYTHON}.args", "at most 100000 characters"),
            Bad(
                {f"{POOLS}.2.containerSpec.args": ["x" * 100_001]},
                "job_spec.worker_pool_specs[2].container_spec.args",
                "at most 100000 characters",
            ),
        ),
        good=({f"{PACKAGE}.args": ["x" * 50_000, "x" * 50_000]},),
    ),
)
