"""docker-compose.yaml, Dockerfile and .env.example fit each other, the repository, and Airflow 3.3.2."""

import base64
import fnmatch
import re
import runpy
import subprocess
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

import pytest
import yaml

SETTING = re.compile(r"AIRFLOW__([A-Z0-9_]+?)__([A-Z0-9_]+)")
ONE_SHOT = {"airflow-init"}


def airflow_options() -> dict[str, set[str]]:
    """Every section and option that this Airflow, and its provider for Celery, declare."""
    core = distribution("apache-airflow-core").locate_file("airflow/config_templates/config.yml")
    sections = yaml.safe_load(Path(str(core)).read_text())
    celery = distribution("apache-airflow-providers-celery").locate_file(
        "airflow/providers/celery/get_provider_info.py"
    )
    sections |= runpy.run_path(str(celery))["get_provider_info"]()["config"]
    return {name: set(section["options"]) for name, section in sections.items() if section}


def bind_mounts(compose: dict[str, Any]) -> set[str]:
    volumes = [volume for service in compose["services"].values() for volume in service.get("volumes", [])]
    return {volume.split(":")[0] for volume in volumes if volume.startswith((".", "/"))}


def test_the_image_is_of_the_airflow_that_is_tested(root: Path, compose_text: str) -> None:
    installed = version("apache-airflow")
    assert f"FROM apache/airflow:{installed} " in (root / "Dockerfile").read_text()
    assert f"trainops-airflow:{installed}" in compose_text
    assert f"apache-airflow=={installed}\n" in (root / "requirements.txt").read_text()


def test_every_airflow_setting_exists(compose_text: str) -> None:
    options = airflow_options()
    settings = {(section.lower(), key.lower()) for section, key in SETTING.findall(compose_text)}
    assert len(settings) > 10
    unknown = {f"[{section}] {key}" for section, key in settings if key not in options.get(section, set())}
    assert not unknown


def test_a_wrong_setting_would_be_noticed() -> None:
    options = airflow_options()
    assert "sql_alchemy_conn" not in options["core"]
    assert "broker_url" in options["celery"]


def test_every_mounted_path_exists(root: Path, compose: dict[str, Any]) -> None:
    mounted = bind_mounts(compose)
    assert mounted
    assert {path for path in mounted if not (root / path).exists()} == set()


def test_every_named_volume_is_declared_and_used(compose: dict[str, Any]) -> None:
    volumes = [volume for service in compose["services"].values() for volume in service.get("volumes", [])]
    named = {volume.split(":")[0] for volume in volumes if not volume.startswith((".", "/"))}
    assert named == set(compose["volumes"])


def test_what_the_dockerfile_copies_exists_and_is_sent_to_the_build(root: Path) -> None:
    copies = re.findall(r"^COPY (?:--\S+ )*(.+) \S+$", (root / "Dockerfile").read_text(), re.MULTILINE)
    sources = {source for line in copies for source in line.split()}
    assert sources
    lines = (root / ".dockerignore").read_text().splitlines()
    allowed = {line[1:] for line in lines if line.startswith("!")}
    assert {source for source in sources if not (root / source).exists()} == set()
    assert sources == allowed
    assert not any(fnmatch.fnmatch(source, line) for source in sources for line in lines if line.startswith("**/"))


def test_no_secret_has_a_default(compose_text: str) -> None:
    secret = re.compile(r"\$\{(\w*(?:PASSWORD|SECRET|KEY)\w*)([^}]*)\}")
    found = secret.findall(compose_text)
    assert found
    assert {name for name, rest in found if not rest.startswith(":?")} == set()


def test_no_password_is_written_out(compose: dict[str, Any], interpolate: Any, root: Path) -> None:
    required = re.findall(r"^(\w+)=$", (root / ".env.example").read_text(), re.MULTILINE)
    for name in required:
        others = {other: "x" for other in required if other != name}
        with pytest.raises(KeyError, match=name):
            interpolate(compose, others)


def test_the_example_names_every_variable(root: Path, compose_text: str) -> None:
    used = set(re.findall(r"\$\{(\w+)", re.sub(r"\$\$\{\w+\}", "", compose_text)))
    named = set(re.findall(r"^(?:# )?(\w+)=", (root / ".env.example").read_text(), re.MULTILINE))
    assert used <= named
    assert named - used == {"COMPOSE_PROFILES"}


def test_the_command_in_the_example_makes_a_whole_env_file(root: Path, tmp_path: Path) -> None:
    example = (root / ".env.example").read_text()
    (tmp_path / ".env.example").write_text(example)
    command = re.search(r"^#\s+(\(umask .*\.env\))$", example, re.MULTILINE)
    assert command
    subprocess.run(["bash", "-c", command[1]], cwd=tmp_path, check=True)
    values = dict(re.findall(r"^(\w+)=(.*)$", (tmp_path / ".env").read_text(), re.MULTILINE))
    assert all(values.values())
    assert len(base64.urlsafe_b64decode(values["FERNET_KEY"])) == 32
    assert values["POSTGRES_PASSWORD"] != values["REDIS_PASSWORD"]
    assert (tmp_path / ".env").stat().st_mode & 0o077 == 0


def test_ports_are_published_on_loopback_only(compose: dict[str, Any]) -> None:
    ports = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert set(ports) == {"airflow-apiserver"}
    assert all(port.startswith("127.0.0.1:") for published in ports.values() for port in published)


def test_every_service_that_stays_is_checked_and_started_again(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        if name in ONE_SHOT:
            assert service["restart"] == "no"
            continue
        assert service["restart"] == "unless-stopped", name
        assert service["healthcheck"]["test"], name


def test_services_wait_for_what_can_be_waited_for(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for name, service in services.items():
        for needed, how in service.get("depends_on", {}).items():
            assert needed in services, name
            expected = "service_completed_successfully" if needed in ONE_SHOT else "service_healthy"
            assert how["condition"] == expected, f"{name} -> {needed}"
            optional = "profiles" in services[needed] and "profiles" not in service
            assert how.get("required", True) is not optional, f"{name} -> {needed}"


def test_the_stand_ins_are_in_the_profile_local_alone(compose: dict[str, Any]) -> None:
    profiles = {name: service["profiles"] for name, service in compose["services"].items() if "profiles" in service}
    assert profiles == {"localcloud": ["local"]}


def test_all_of_airflow_finds_the_addresses_of_the_stand_ins(root: Path, compose: dict[str, Any]) -> None:
    local = yaml.safe_load((root / "include/configs/environments/local.yaml").read_text())
    folder = Path("/opt/airflow") / Path(local["endpoints"]).parent
    for name, service in compose["services"].items():
        if service["image"].startswith("trainops-"):
            assert f"localcloud:{folder}" in service["volumes"], name
