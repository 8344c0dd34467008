import json
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from localcloud.airflow_environment import airflow_environment, airflow_settings, write_password_file
from localcloud.errors import UsageError
from localcloud.files import write_json
from localcloud.home import Home
from localcloud.secrets_file import load_secrets


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path, tmp_path / "dags", tmp_path / "python")
    home.make_folders()
    return home


def _environment(home: Home) -> dict[str, str]:
    url = "http://127.0.0.1:8802"
    return airflow_environment(home, load_secrets(home), port=8123, postgres_port=5433, storage_url=url)


def test_every_setting_exists_in_this_airflow(home: Home) -> None:
    spec = find_spec("airflow")
    assert spec is not None
    assert spec.submodule_search_locations
    templates = Path(spec.submodule_search_locations[0]) / "config_templates"
    known = yaml.safe_load((templates / "config.yml").read_text())
    settings = [key.lower().split("__")[1:] for key in _environment(home) if key.startswith("AIRFLOW__")]
    assert len(settings) > 30
    assert [pair for pair in settings if pair[1] not in known[pair[0]]["options"]] == []


def test_the_port_stands_in_all_three_settings(home: Home) -> None:
    environment = _environment(home)
    assert environment["AIRFLOW__API__PORT"] == "8123"
    assert environment["AIRFLOW__API__BASE_URL"] == "http://127.0.0.1:8123"
    assert environment["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:8123/execution/"
    assert environment["AIRFLOW__API__HOST"] == "127.0.0.1"


@pytest.mark.case("C109")
@pytest.mark.case("C110")
def test_google_is_reached_anonymously_at_the_stand_in(home: Home) -> None:
    environment = _environment(home)
    assert environment["STORAGE_EMULATOR_HOST"] == "http://127.0.0.1:8802"
    assert json.loads(environment["AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT"])["extra"]["is_anonymous"] is True


def test_secrets_are_made_once_and_are_readable_by_their_owner_alone(home: Home) -> None:
    secrets = load_secrets(home)
    assert load_secrets(home) == secrets
    write_password_file(home, secrets)
    files = [home.state / "secrets.json", home.airflow / "simple_auth_manager_passwords.json"]
    assert [oct(file.stat().st_mode & 0o777) for file in files] == ["0o600", "0o600"]
    assert json.loads(files[1].read_text()) == {"admin": secrets.airflow_password}


def test_the_command_line_needs_a_local_cloud_that_is_up(home: Home) -> None:
    with pytest.raises(UsageError, match="make up"):
        airflow_settings(home)
    write_json(home.environment_file, {"A": "b"})
    assert airflow_settings(home) == {"A": "b"}
