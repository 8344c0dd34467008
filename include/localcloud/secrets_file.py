"""Passwords and keys of one local cloud: made once, kept in a file that only its owner can read."""

from __future__ import annotations

import base64
import os
import secrets
from dataclasses import asdict, dataclass

from localcloud.files import read_json, write_json
from localcloud.home import Home


@dataclass(frozen=True)
class Secrets:
    """Everything that is generated."""

    postgres_password: str
    airflow_password: str
    jwt_secret: str
    api_secret: str
    fernet_key: str


def load_secrets(home: Home) -> Secrets:
    """Read the secrets, and make them at the first time."""
    path = home.state / "secrets.json"
    stored = read_json(path)
    if isinstance(stored, dict) and set(stored) == set(Secrets.__dataclass_fields__):
        return Secrets(**stored)
    made = Secrets(
        postgres_password=secrets.token_urlsafe(24),
        airflow_password=secrets.token_urlsafe(9),
        jwt_secret=secrets.token_urlsafe(48),
        api_secret=secrets.token_urlsafe(32),
        fernet_key=base64.urlsafe_b64encode(os.urandom(32)).decode(),
    )
    write_json(path, asdict(made))
    return made
