"""The environment that Trainops works in: project, region, buckets, credentials, and where Google's services answer.

One YAML file per environment in the folder of configs; `TRAINOPS_ENVIRONMENT` names the one in use. Nothing else tells
a laptop from the cloud: an environment whose `endpoints` are null speaks to Google itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from trainops.errors import ConfigError
from trainops.validation import parse_json, read_yaml, validated

DEFAULT_ENVIRONMENT = "local"
_PLACEHOLDER = re.compile(r"YOUR_[A-Z_]+")


def project_root() -> Path:
    """Return the parent of the `plugins` folder that holds this library."""
    return Path(__file__).resolve().parents[2]


def configs_folder() -> Path:
    """Return the folder of configs: `TRAINOPS_CONFIGS`, else `include/configs` of the project."""
    return _folder("TRAINOPS_CONFIGS", project_root() / "include" / "configs")


def trainer_folder() -> Path:
    """Return the folder of the trainer's source: `TRAINOPS_TRAINER`, else `trainer` of the project."""
    return _folder("TRAINOPS_TRAINER", project_root() / "trainer")


def config_names(kind: str) -> list[str]:
    """Return the sorted names of the YAML files of one kind: environments, experiments or datasets."""
    return sorted(path.stem for path in (configs_folder() / kind).glob("*.yaml"))


def config_file(kind: str, name: str, *, source: str = "", key: str = "") -> Path:
    """Return the path of `{kind}/{name}.yaml`.

    :param source: file that asked for it, and `key` in it, for the message.
    :raises ConfigError: there is no such file; names those that there are.
    """
    path = configs_folder() / kind / f"{name}.yaml"
    if name in config_names(kind):  # never ask the file system for what a user typed
        return path
    what = kind.removesuffix("s")
    raise ConfigError(
        f"no such {what}",
        source=source,
        key=key or what,
        value=name,
        allowed=config_names(kind),
        next_step=f"add {path}, or name one that is there",
    )


def environment_name(name: str | None = None) -> str:
    """Return `name`, else what `TRAINOPS_ENVIRONMENT` says, else `local`."""
    return name or os.environ.get("TRAINOPS_ENVIRONMENT") or DEFAULT_ENVIRONMENT


def load_settings(name: str | None = None) -> Settings:
    """Return the settings of the environment `name`, else of `TRAINOPS_ENVIRONMENT`, else of `local`.

    :raises ConfigError: no such environment, its file is broken, or placeholders in it are not filled in yet.
    """
    asked = environment_name(name)
    path = config_file("environments", asked, source="" if name else "TRAINOPS_ENVIRONMENT")
    data = read_yaml(path)
    _require_filled(data, str(path))
    if isinstance(data, Mapping):
        data = {"name": asked, **data}
    settings = validated(Settings, data, source=str(path))
    if settings.name != asked:
        raise ConfigError("the file's name is the environment's", source=str(path), key="name", value=settings.name)
    settings._source = str(path)
    return settings


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Buckets(_Strict):
    """Names of the two buckets, without `gs://`."""

    work: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$", description="Data, packages, runs and the queue.")
    models: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$", description="Promoted models.")


class Image(_Strict):
    """Container images that the trainer runs in."""

    cpu: str | None = Field(None, min_length=1, description="URI of the image for jobs without GPUs.")
    gpu: str | None = Field(None, min_length=1, description="URI of the image for jobs with GPUs.")


class Endpoints(_Strict):
    """Addresses of the services; null means Google's own."""

    vertex: str | None = Field(None, pattern="^https?://", description="Address of Vertex AI.")
    storage: str | None = Field(None, pattern="^https?://", description="Address of Cloud Storage.")
    logging: str | None = Field(None, pattern="^https?://", description="Address of Cloud Logging.")


class Settings(_Strict):
    """One environment."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, serialize_by_alias=True)

    _source: str = PrivateAttr("")
    name: str = Field(min_length=1, description="Name of the environment: its file's name.")
    project: str = Field(
        pattern=r"^(?:[a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]$", description="Google Cloud project id."
    )
    project_number: str = Field(pattern=r"^[0-9]+$", description="Google Cloud project number, in quotes.")
    region: str = Field(pattern=r"^[a-z]+-[a-z]+[0-9]+$", description="Region that jobs run in unless told otherwise.")
    buckets: Buckets = Field(description="Buckets; without the key, PROJECT-llm-work and PROJECT-llm-models.")
    credentials: Literal["anonymous", "google"] = Field(
        "google",
        description="google: the Airflow connection in tasks, application default credentials on the command line; "
        "anonymous: none, which only the local cloud takes.",
    )
    connection: str = Field("google_cloud_default", min_length=1, description="Airflow connection id.")
    impersonation_chain: str | list[str] | None = Field(
        None, description="Service account to act as, or the chain that leads to it."
    )
    quota_project: str | None = Field(
        None,
        pattern=r"^[a-z][a-z0-9-]{4,28}[a-z0-9]$",
        description="Project that calls of Google's services are counted against; null: what the credentials say.",
    )
    service_account: str | None = Field(
        None, pattern=r"^[^@/\s]+@[^@/\s]+$", description="Service account that jobs run as; null: Vertex's own."
    )
    image: Image = Field(default_factory=lambda: Image(cpu=None, gpu=None), description="Images of the trainer.")
    substitute: Literal["allow", "warn", "refuse"] = Field(
        "warn", description="What to do with machines and accelerators that Google has retired."
    )
    poll_seconds: float = Field(
        30.0, ge=0.5, le=3600, description="Seconds between two looks at a job that is waited for."
    )
    endpoints_setting: str | Endpoints | None = Field(
        None,
        alias="endpoints",
        description="A JSON file relative to the project root, a mapping, or null for Google's own services.",
    )

    @model_validator(mode="before")
    @classmethod
    def _name_buckets(cls, data: Any) -> Any:
        if not isinstance(data, dict) or data.get("buckets") is not None or not isinstance(data.get("project"), str):
            return data
        project = data["project"].replace(":", "-")
        return {**data, "buckets": {"work": f"{project}-llm-work", "models": f"{project}-llm-models"}}

    @property
    def work(self) -> str:
        """URI of the bucket of data, packages, runs and the queue."""
        return f"gs://{self.buckets.work}"

    @property
    def models(self) -> str:
        """URI of the bucket of promoted models."""
        return f"gs://{self.buckets.models}"

    @property
    def endpoints(self) -> Endpoints:
        """Addresses of the services, read anew each time: a local cloud that was started again has other ports.

        :raises ConfigError: the local cloud that should have written them is not running.
        """
        if isinstance(self.endpoints_setting, Endpoints):
            return self.endpoints_setting
        if self.endpoints_setting is None:
            return Endpoints(vertex=None, storage=None, logging=None)
        return _read_endpoints(project_root() / self.endpoints_setting, self._source)

    def vertex_endpoint(self, region: str | None = None) -> str:
        """Return the address of Vertex AI in `region`, else in the environment's own."""
        return self.endpoints.vertex or f"https://{region or self.region}-aiplatform.googleapis.com"

    def logging_endpoint(self) -> str:
        """Return the address of Cloud Logging."""
        return self.endpoints.logging or "https://logging.googleapis.com"


def _folder(variable: str, default: Path) -> Path:
    value = os.environ.get(variable)
    return Path(value).expanduser().resolve() if value else default


def _read_endpoints(path: Path, source: str) -> Endpoints:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            "the local cloud is not running",
            source=source,
            key="endpoints",
            value=str(path),
            next_step="start it with `make up`",
        ) from error
    data = parse_json(text, source=str(path))
    if not isinstance(data, Mapping):
        return validated(Endpoints, data, source=str(path))
    return validated(Endpoints, {key: data.get(key) for key in Endpoints.model_fields}, source=str(path))


def _require_filled(data: Any, source: str) -> None:
    found = [(key, match.group()) for key, text in _texts(data) if (match := _PLACEHOLDER.search(text))]
    if not found:
        return
    raise ConfigError(
        "placeholders are not filled in yet",
        source=source,
        key=found[0][0],
        value=found[0][1],
        next_step=f"fill in {', '.join(f'{key} ({text})' for key, text in found)}",
    )


def _texts(data: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(data, str):
        yield prefix, data
    items = data.items() if isinstance(data, Mapping) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from _texts(value, f"{prefix}.{key}" if prefix else str(key))
