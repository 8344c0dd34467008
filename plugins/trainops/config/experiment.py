"""An experiment: one YAML file that says what to train, on what, on which machines, when, and what is good enough.

The file's name is the experiment's name, the DAG is `train_<name>`. A newcomer reads `stdlib_tiny.yaml` first.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, Literal
from zoneinfo import available_timezones

from pydantic import Field, SerializerFunctionWrapHandler, field_validator, model_serializer, model_validator

from trainops.config.candidates import CandidateMachines
from trainops.config.cron import check_cron
from trainops.config.machines import parse_input
from trainops.config.model import Config, Day
from trainops.config.origin import Origin
from trainops.config.priority import Priority
from trainops.naming import check_experiment_name
from trainops.settings import config_file, config_names
from trainops.validation import Refused, read_yaml, validated


class Schedule(Config):
    """When the experiment runs by itself."""

    cron: str = Field(min_length=1, description="Cron expression in the time zone below.", examples=["30 2 * * *"])
    timezone: str = Field(
        "UTC", description="IANA time zone; the data date is counted in it, too.", examples=["Europe/Berlin"]
    )
    start_date: Day = Field(description="First day that a run may be scheduled on.")
    catchup: bool = Field(False, description="Whether runs missed since start_date are made up for.")

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        if name not in _zones():
            raise Refused("no such time zone", allowed=sorted(_zones()))
        return name

    @field_validator("cron")
    @classmethod
    def _five_fields(cls, cron: str) -> str:
        return check_cron(cron)


class Tokenizer(Config):
    """How text becomes tokens; trained once per dataset and set of values."""

    kind: Literal["bpe"] = Field("bpe", description="Byte-level byte-pair encoding.")
    vocab_size: int = Field(2048, ge=257, le=1_000_000, description="Most tokens in the vocabulary.")
    heldout_fraction: float = Field(0.05, gt=0, le=0.5, description="Share of documents held out for evaluation.")
    seed: int = Field(0, ge=0, lt=2**32, description="Seed of the tokenizer.")
    documents: Literal["text", "pairs"] | None = Field(
        None, description="pairs: lines of JSON with prompt and response, of which the response is learnt; null: text."
    )
    init_from: Origin | None = Field(
        None,
        description="Whose tokenizer is taken: a Hugging Face folder, gs://bucket/folder, or a promoted model, "
        "MODEL@CHANNEL; null: that of training.init_from, and without one, it is trained.",
        examples=["gs://my-bucket/models/first", "stdlib-tiny@production"],
    )

    @model_validator(mode="after")
    def _size_of_its_own(self) -> Tokenizer:
        if self.init_from is not None:
            self.refuse_size()
        return self

    def refuse_size(self, key: str = "vocab_size") -> None:
        """Refuse a size of the vocabulary where the tokenizer is a ready one.

        :raises Refused: one was given.
        """
        if self.vocab_size != type(self).model_fields["vocab_size"].default:
            problem = "the tokenizer of init_from has a size of its own"
            raise Refused(problem, key=key, value=self.vocab_size, next_step="leave it out")

    @model_serializer(mode="wrap")
    def _without_nulls(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # The tokens are named by these values: a key that is not used must not give them another name.
        return {key: value for key, value in dump(self).items() if value is not None}


class Model(Config):
    """Shape of the language model."""

    family: Literal["llama", "gpt2", "qwen2"] = Field("llama", description="Architecture, as Hugging Face names it.")
    hidden_size: int = Field(128, ge=8, description="Width of the residual stream.")
    layers: int = Field(4, ge=1, description="Transformer blocks.")
    heads: int = Field(4, ge=1, description="Attention heads per block; hidden_size is a multiple of twice as many.")
    kv_heads: int | None = Field(None, ge=1, description="Heads of keys and values; null: as many as heads.")
    intermediate_size: int | None = Field(None, ge=1, description="Width of the feed-forward layer; null: by family.")
    context: int = Field(128, ge=2, description="Longest sequence, in tokens.")
    dropout: float | None = Field(None, ge=0, le=0.9, description="Dropout while training; null: none.")
    tie_embeddings: bool | None = Field(None, description="Share input and output embeddings; null: in small models.")

    @model_validator(mode="after")
    def _heads_divide_width(self) -> Model:
        if self.hidden_size % (2 * self.heads):
            raise Refused(
                f"each of the {self.heads} heads needs an even number of values",
                key="hidden_size",
                value=self.hidden_size,
                next_step=f"take {max(1, round(self.hidden_size / (2 * self.heads))) * 2 * self.heads}",
            )
        if self.kv_heads is not None and (self.family == "gpt2" or self.heads % self.kv_heads):
            problem = "gpt2 has none of its own" if self.family == "gpt2" else f"must divide the {self.heads} heads"
            raise Refused(problem, key="kv_heads", value=self.kv_heads)
        return self

    @model_serializer(mode="wrap")
    def _without_nulls(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in dump(self).items() if value is not None}


class Training(Config):
    """How the model is trained."""

    steps: int = Field(ge=1, le=100_000_000, description="Optimizer steps.")
    batch_size: int = Field(16, ge=1, le=1_000_000, description="Sequences per step, over all replicas.")
    learning_rate: float = Field(0.003, gt=0, le=1, description="Peak learning rate, after the warm-up.")
    warmup_steps: int = Field(50, ge=0, description="Steps over which the learning rate rises from 0.")
    weight_decay: float = Field(0.1, ge=0, description="AdamW's weight decay.")
    grad_clip: float = Field(1.0, ge=0, description="Largest norm of the gradient; 0: no limit.")
    seed: int = Field(0, ge=0, lt=2**32, description="Seed of weights and data order.")
    strategy: Literal["auto", "single", "ddp", "fsdp", "parameter_server"] | None = Field(
        None,
        description="How replicas share the work; auto, the default: parameter_server where the job has such servers, "
        "ddp with several replicas, else single. fsdp shards the model over them.",
    )
    eval_every: int = Field(200, ge=0, description="Steps between evaluations; 0: only before and after.")
    eval_batches: int = Field(32, ge=1, description="Batches per evaluation while training.")
    checkpoint_every: int = Field(100, ge=0, description="Steps between checkpoints; 0: only at the end.")
    log_every: int = Field(10, ge=1, description="Steps between lines of metrics.")
    sample_prompt: str = Field("def ", min_length=1, description="What the sample at the end continues.")
    init_from: Origin | None = Field(
        None,
        description="Model to go on from: a Hugging Face folder, gs://bucket/folder, or a promoted model, "
        "MODEL@CHANNEL; null: random weights.",
        examples=["gs://my-bucket/models/first", "stdlib-tiny@production"],
    )

    @model_serializer(mode="wrap")
    def _without_nulls(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in dump(self).items() if value is not None}


class Queue(Config):
    """The job's place in the GPU queue."""

    priority: Priority = Field(50, description="Priority class: low, normal, high, urgent, or 0 to 100.")
    estimate_hours: float | None = Field(None, gt=0, description="Expected hours of training; null: unknown.")
    max_waiting_hours: float = Field(24.0, gt=0, description="Hours in the queue after which the run gives up.")
    max_running_hours: float = Field(24.0, gt=0, description="Hours of running after which the job is cancelled.")
    candidates: list[CandidateMachines] = Field(
        default_factory=list,
        max_length=8,
        description="Machines to take when those of training_input are not to be had, in this order; each says what "
        "differs. The pools of gpu_pools.yaml are what is allowed.",
        examples=[[{"region": "us-east1"}, {"provisioning": "spot"}]],
    )
    max_spot_losses: int | None = Field(
        None, ge=1, le=19, description="Spot machines are given up after so many losses; null: never."
    )
    on_demand_after_hours: float | None = Field(
        None, gt=0, description="Hours after which no attempt begins on Spot machines; null: at any time."
    )

    max_usd: float | None = Field(
        None, gt=0, description="What a run's training may cost, in US dollars by the price list; null: no cap."
    )

    @property
    def gives_up_spot(self) -> str:
        """The key that says when Spot machines are given up; empty when they never are."""
        given = [key for key in ("max_spot_losses", "on_demand_after_hours") if getattr(self, key) is not None]
        return given[0] if given else ""


class Promotion(Config):
    """What a model must show to be promoted, and where to."""

    model: str = Field(
        "",
        pattern=r"^(?:[a-z][a-z0-9-]{0,62})?$",
        description="Name in the model bucket; the experiment's, with - for _, unless told otherwise.",
    )
    promote: Literal["auto", "never"] = Field("auto", description="never: train and check only.")
    min_steps: int | None = Field(None, ge=1, description="Fewest steps trained; null: all that the run planned.")
    max_eval_loss: float | None = Field(
        None, gt=0, description="Largest evaluation loss, in nats per token; null: no limit."
    )
    must_beat_unigram: bool = Field(
        True, description="Whether the loss must be below the unigram entropy of the held-out text."
    )
    min_improvement: float = Field(
        0.0, ge=0, description="By how much the loss must be below the champion's, in nats per token."
    )
    allow_older_data: bool = Field(
        False,
        description="Whether a model of an older data date, such as a backfill's, may replace one of a newer date.",
    )
    approval: Literal["none", "required"] = Field(
        "none", description="required: a person approves in Airflow before the model is promoted."
    )
    channel: Literal["candidate", "production"] = Field("production", description="Channel that is pointed at it.")


class Experiment(Config):
    """One file of `experiments/`."""

    description: str = Field(min_length=1, description="What is trained and why; the DAG's documentation.")
    owner: str = Field(min_length=1, description="Person or team that answers for it.")
    tags: list[str] = Field(default_factory=list, description="Tags of the DAG.")
    schedule: Schedule | None = Field(None, description="When it runs by itself; null: only when triggered.")
    dataset: str = Field(min_length=1, description="Name of a file in datasets/.")
    tokenizer: Tokenizer = Field(default_factory=Tokenizer, description="How text becomes tokens.")
    model: Model = Field(default_factory=Model, description="Shape of the language model.")
    training: Training = Field(description="How the model is trained.")
    training_input: dict[str, Any] = Field(
        description="Machines of the training job: a TrainingInput of AI Platform Training."
    )
    tokenize_input: dict[str, Any] = Field(
        default_factory=lambda: {"scaleTier": "CUSTOM", "masterType": "n1-standard-4"},
        description="Machine of the tokenizing job, in the same spelling; a CPU machine is enough.",
    )
    queue: Queue = Field(default_factory=Queue, description="Its place in the GPU queue.")
    promotion: Promotion = Field(default_factory=Promotion, description="What a model must show, and where it goes.")

    @model_validator(mode="after")
    def _one_shape(self) -> Experiment:
        if self.training.init_from is None:
            return self
        self.tokenizer.refuse_size("tokenizer.vocab_size")
        given = [name for name in Model.model_fields if name in self.model.model_fields_set - {"context"}]
        if given:
            raise Refused(
                "the shape is that of the model in training.init_from",
                key=f"model.{given[0]}",
                value=getattr(self.model, given[0]),
                next_step="leave it out: of model only context may be given",
            )
        return self


def experiment_names() -> list[str]:
    """Return the names of all experiments, broken ones included, sorted."""
    return config_names("experiments")


def experiment_file(name: str) -> Path:
    """Return the path of the experiment's file.

    :raises ConfigError: there is none.
    """
    return config_file("experiments", name)


def load_experiment(name: str) -> Experiment:
    """Return the experiment `name`: machines in REST spelling, the name of its model and its tokenizer filled in.

    :raises ConfigError: no such experiment, its name cannot stand in labels, or its file is wrong.
    """
    path = experiment_file(name)
    source = str(path)
    check_experiment_name(name, source)
    experiment = validated(Experiment, read_yaml(path), source=source)
    changes: dict[str, Any] = {
        key: parse_input(getattr(experiment, key), source=source, key=key)
        for key in ("training_input", "tokenize_input")
    }
    if not experiment.promotion.model:
        changes["promotion"] = experiment.promotion.model_copy(update={"model": name.replace("_", "-")})
    if experiment.training.init_from is not None and experiment.tokenizer.init_from is None:
        # No other tokenizer fits a model than its own.
        changes["tokenizer"] = experiment.tokenizer.model_copy(update={"init_from": experiment.training.init_from})
    return experiment.model_copy(update=changes)


@functools.cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())
