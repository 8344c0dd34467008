import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from tests.ports import free_port

from localcloud import postgres
from localcloud.process import Process


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("postgres")
    data, port = folder / "data", free_port()
    postgres.ensure_cluster(data, "secret")
    postgres.ensure_cluster(data, "another")  # exists: left as it is
    process = Process.start(postgres.server_command(data, port), {}, Path("/"), folder / "log")
    deadline = time.monotonic() + 120
    while not postgres.is_ready(port):
        assert time.monotonic() < deadline, (folder / "log").read_text()
        time.sleep(0.1)
    yield port
    process.ask_to_end()
    process.end(grace_seconds=10)


def test_the_server_answers_whoever_knows_the_password(server: int) -> None:
    with psycopg.connect(postgres.connection_uri(server, "secret", driver="postgresql")) as connection:
        row = connection.execute("SELECT current_user, current_setting('listen_addresses')").fetchone()
    assert row == ("airflow", "127.0.0.1")


def test_a_wrong_password_is_refused(server: int) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(postgres.connection_uri(server, "guess", driver="postgresql"))


def test_the_password_does_not_lie_about_in_a_file(tmp_path: Path) -> None:
    postgres.ensure_cluster(tmp_path / "data", "s3cret-word")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    files = [path for path in (tmp_path / "data").rglob("*.conf") if path.is_file()]
    assert not any("s3cret-word" in path.read_text() for path in files)
