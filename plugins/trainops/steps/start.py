"""Begin or resume a job key: a first start and a clear open a generation, a retry goes on with the one that is open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from trainops import naming
from trainops.config.gpu_pools import FILE, load_gpu_pools
from trainops.config.machines import asked_of_queue, provisioning
from trainops.errors import ConfigError, IntegrityError, WriteConflict
from trainops.gcp.storage import Storage
from trainops.jobspec.hidden import hidden_job
from trainops.jobspec.training_input import TrainingInput, parse_training_input
from trainops.jobspec.translate import Images, Translation, translate
from trainops.policy.failure import EXIT_NEVER
from trainops.policy.lifecycle import begins_generation
from trainops.policy.record import Candidate, Limits, Record, TaskTry, Verdict
from trainops.settings import Settings, configs_folder
from trainops.steps.record_store import RecordStore

CHANGED = "changed: "
"""Begins a sentence about a field that means or does something else than the user wrote."""


@dataclass(frozen=True, kw_only=True)
class CandidateInput:
    """Other machines that a job may run on."""

    training_input: dict[str, Any]
    """The fields of the TrainingInput that differ."""
    after_spot: bool = False
    """True for machines that are taken only once Spot machines were given up."""


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """What a task asks for: one job key's job, before it is translated."""

    job_key: str
    run_key: str
    experiment: str
    task: str
    display_name: str
    training_input: dict[str, Any]
    """AI Platform's TrainingInput, complete but for `jobDir` and `--config` when there is a plan."""
    candidates: tuple[CandidateInput, ...] = ()
    """Other machines for it, in the order in which they are tried."""
    max_spot_losses: int | None = None
    """Spot machines are given up after so many losses; None: never."""
    max_usd: float | None = None
    """US dollars that all its jobs together may cost by the price list; None: no cap."""
    spot_hours: float | None = None
    """Hours after which no attempt begins on Spot machines; None: at any time."""
    plan: dict[str, Any] | None = None
    """The run plan, when the job belongs to an experiment's run; the generation keeps a copy."""
    labels: dict[str, str] = field(default_factory=dict)
    """Labels of Trainops' own, beside those of the job key."""
    user_labels: dict[str, str] = field(default_factory=dict)
    """Labels of the user, beside those of the TrainingInput; one with a name of ours is kept as `user-NAME`."""
    priority: int = 50
    """Priority class in the GPU queue: larger goes first."""
    estimate_hours: float | None = None
    """Hours that it probably runs; None: nobody knows."""
    preemptible: bool | None = None
    """Whether the job saves its state and leaves when its control folder says so; None: a job with a plan does."""
    max_waiting_hours: float | None = None
    """Hours in the queue, before the first job, after which the generation gives up."""
    max_running_hours: float | None = None
    """Hours after the waiting time at which the generation ends, whatever happens in between."""
    wait_limit: timedelta | None = None
    """Time from the beginning of a try after which it gives up waiting for GPUs."""
    try_limit: timedelta | None = None
    """Time from the beginning of a try after which the generation ends; the next try has it anew."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


def begin(
    storage: Storage, settings: Settings, record_uri: str, request: JobRequest, current: TaskTry, *, actor: str,
    clock: Callable[[], datetime] = _utc_now,
) -> tuple[Record, list[str]]:  # fmt: skip
    """Open or resume the record of a job key, and tell in sentences what that meant.

    :param clock: tells the time from which deadlines are counted.
    :raises ConfigError: when the job cannot be translated.
    :raises IntegrityError: when the record belongs to another task.
    """
    store = RecordStore(storage, record_uri)
    opened: dict[int, Record] = {}
    told: list[str] = []

    def begun(record: Record | None) -> Record | None:
        told.clear()
        if record is not None and not begins_generation(record, current):
            return _resumed(_own(record, current), request, current, actor, told, clock())
        generation = 1 if record is None else _own(record, current).generation + 1
        if generation not in opened:
            opened[generation] = open_generation(storage, settings, request, current, generation, told, actor, clock())
        fresh = opened[generation]
        if record is None:
            return fresh
        told.append(f"the task was cleared: generation {generation} begins, jobs of generation {record.generation} end")
        past = record.to_json()
        return fresh.model_copy(update={"earlier": (*record.earlier, {**past, "earlier": []})})

    after = store.change(begun)
    assert after is not None, "`begun` always answers a record"
    return after, told


def open_generation(
    storage: Storage,
    settings: Settings,
    request: JobRequest,
    current: TaskTry,
    generation: int,
    told: list[str],
    actor: str,
    now: datetime,
) -> Record:
    """Translate and freeze a generation's job; its plan and the notes of the translation are kept in its folder."""
    folder = naming.generation_folder(settings.work, request.experiment, request.run_key, generation)
    if request.plan is None or current.map_index >= 0:  # a job beside the run's main one is kept apart from that one
        folder = naming.task_folder(folder, request.task, current.map_index)
    translation = translate_request(settings, request, folder)
    others = [translate_candidate(settings, request, item, folder) for item in request.candidates]
    explained = [_explained(item) for item in (translation, *others)]
    _keep(storage, f"{folder}/translation.json", explained[0] | ({"others": explained[1:]} if others else {}))
    if request.plan is not None:
        _keep(storage, f"{folder}/plan.json", request.plan)
    told.extend(f"{CHANGED}{note.field}: {note.text}" for note in translation.notes if note.verdict == "changed")
    spec, asked = frozen_spec(translation), _asked([translation, *others], request.task)
    record = Record(
        job_key=request.job_key,
        run_key=request.run_key,
        experiment=request.experiment,
        owner=current,
        generation=generation,
        opened_at=now,
        region=translation.region,
        spec=spec,
        spec_hash=spec["labels"]["spec-hash"],
        folder=folder,
        accelerators=asked[0],
        provisioning=provisioning(spec),
        alternatives=tuple(
            _candidate(other, given, queued)
            for other, given, queued in zip(others, request.candidates, asked[1:], strict=True)
        ),
        priority=request.priority,
        estimate_seconds=None if request.estimate_hours is None else request.estimate_hours * 3600,
        preemptible=request.plan is not None if request.preemptible is None else request.preemptible,
        limits=_limits(request, now, now),
    )
    return record.told(now, actor, f"generation {generation} begins", f"try {current.try_number}")


def _asked(translated: list[Translation], task: str) -> list[dict[str, int]]:
    """What each of a job's candidates asks the queue for; where one on CPUs does not queue, none does.

    :raises ConfigError: some take GPUs, and others none.
    """
    if all(item.accelerators for item in translated):
        return [dict(item.accelerators) for item in translated]
    if any(item.accelerators for item in translated):
        raise ConfigError(
            "all candidates take GPUs, or none does", source=task, key="candidates",
            value=[item.accelerators for item in translated], next_step="make two tasks of it",
        )  # fmt: skip
    pools = load_gpu_pools() if (configs_folder() / FILE).exists() else None
    asked = [{} if pools is None else asked_of_queue(item, pools) for item in translated]
    return asked if all(asked) else [{} for _ in translated]


def _candidate(translation: Translation, given: CandidateInput, asked: dict[str, int]) -> Candidate:
    spec = frozen_spec(translation)
    return Candidate(
        region=translation.region, accelerators=asked, provisioning=provisioning(spec), spec=spec,
        after_spot=given.after_spot,
    )  # fmt: skip


def translate_candidate(settings: Settings, request: JobRequest, candidate: CandidateInput, folder: str) -> Translation:
    """Translate what a task asks for, on other machines.

    :raises ConfigError: when it cannot be.
    """
    body = {**request.training_input, **candidate.training_input}
    return translate_request(settings, replace(request, training_input=body), folder)


def frozen_spec(translation: Translation) -> dict[str, Any]:
    """The CustomJob of a generation, with its own fingerprint among its labels."""
    labels = {**translation.job.get("labels", {}), "spec-hash": naming.fingerprint(translation.job)}
    return {**translation.job, "labels": labels}


def attempt_body(spec: dict[str, Any], folder: str, generation: int, attempt: int) -> dict[str, Any]:
    """The frozen spec with what differs between attempts: two labels, and where the trainer looks for orders."""
    labels = {**spec["labels"], "generation": str(generation), "attempt": str(attempt)}
    control = {"name": naming.CONTROL_VARIABLE, "value": naming.control_folder(folder, attempt)}
    job_spec = dict(spec["jobSpec"])
    job_spec["workerPoolSpecs"] = [_with_env(pool, control) for pool in job_spec["workerPoolSpecs"]]
    return {**spec, "labels": labels, "jobSpec": job_spec}


def _with_env(pool: dict[str, Any], variable: dict[str, str]) -> dict[str, Any]:
    for key in ("pythonPackageSpec", "containerSpec"):
        if key in pool:
            return {**pool, key: {**pool[key], "env": [*pool[key].get("env", []), variable]}}
    return pool


def translate_request(
    settings: Settings, request: JobRequest, folder: str, translated: Callable[..., Translation] = translate
) -> Translation:
    """Translate what a task asks for, as its job will be sent.

    :param translated: `translate`, which refuses tuning jobs, or `translate_tuning`.
    :raises ConfigError: when it cannot be.
    """
    body = dict(request.training_input)
    if request.max_running_hours is not None:  # Vertex counts running only, as the experiment's field says
        limit = {"maxRunningTime": f"{request.max_running_hours * 3600:.0f}s"}
        body["scheduling"] = limit | (body.get("scheduling") or {})
    if request.plan is not None:
        body.setdefault("jobDir", folder)
        body["args"] = [f"--config={folder}/plan.json", *body.get("args", [])]
    labels = {
        **request.labels,
        "managed-by": naming.MANAGED_BY,
        "experiment": naming.label_value(request.experiment),
        "run-key": naming.label_value(request.run_key),
        "job-key": naming.label_value(request.job_key),
        "task": naming.label_value(request.task),
    }
    return translated(
        _parsed(body, request), display_name=request.display_name, labels=labels,
        substitute=settings.substitute, images=Images(cpu=settings.image.cpu, gpu=settings.image.gpu),
        service_account=settings.service_account,
    )  # fmt: skip


def _parsed(body: dict[str, Any], request: JobRequest) -> TrainingInput:
    """The TrainingInput with the user's labels of both places.

    :raises ConfigError: it is none, or a label has two values.
    """
    spec = parse_training_input(body, request.task)
    held = spec.job.labels or {}
    for name, value in request.user_labels.items():
        if held.get(name, value) != value:
            raise ConfigError(
                "labels and the labels of training_input differ", source=request.task, key=f"labels.{name}",
                value=value, allowed=[held[name]], next_step="give it in one of the two places",
            )  # fmt: skip
    if not request.user_labels:
        return spec
    job = {**(body.get("job") or {}), "labels": {**held, **request.user_labels}}
    return parse_training_input({**body, "job": job}, request.task)


def _explained(translation: Translation) -> dict[str, Any]:
    notes = [asdict(note) for note in translation.notes]
    return {"job": hidden_job(translation.job), "notes": notes, "region": translation.region}


def _keep(storage: Storage, uri: str, value: dict[str, Any]) -> None:
    """Write once: a crash between this and the record leaves the same object, which stays."""
    try:
        storage.write_json(uri, value, generation=0)
    except WriteConflict:
        found = storage.read_json(uri)
        if found is None or found.value != value:  # a deploy between crash and retry: no record refers to it yet
            storage.write_json(uri, value, generation=0 if found is None else found.generation)


def _limits(request: JobRequest, opened: datetime, now: datetime) -> Limits:
    """The deadlines of a generation that was opened then, in a try that begins now."""

    def first(hours: float | None, limit: timedelta | None) -> datetime | None:
        ends = [opened + timedelta(hours=hours)] if hours is not None else []
        return min([*ends, now + limit] if limit is not None else ends, default=None)

    waiting, running = request.max_waiting_hours, request.max_running_hours
    whole = None if running is None else running + (waiting or 0)
    spot = request.spot_hours
    return Limits(
        submit_by=first(waiting, request.wait_limit),
        finish_by=first(whole, request.try_limit),
        max_spot_losses=request.max_spot_losses,
        max_usd=request.max_usd,
        spot_until=None if spot is None else opened + timedelta(hours=spot),
    )


def _own(record: Record, current: TaskTry) -> Record:
    mine = (current.dag_id, current.run_id, current.task_id, current.map_index)
    owner = record.owner
    if mine != (owner.dag_id, owner.run_id, owner.task_id, owner.map_index):
        raise IntegrityError(f"{record.job_key}: its record belongs to {owner.dag_id}, {owner.run_id}, {owner.task_id}")
    return record


def _resumed(
    record: Record, request: JobRequest, current: TaskTry, actor: str, told: list[str], now: datetime
) -> Record:
    reopened = reopens(record)
    what = f"try {current.try_number} goes on with generation {record.generation}"
    told.append(what + (": the last attempt failed, the next one resumes from its checkpoint" if reopened else ""))
    changes: dict[str, Any] = {"owner": current, "hand_over": None}
    if reopened:
        changes |= {"verdict": None, "message": ""}
    if request.try_limit is not None or request.wait_limit is not None:
        ends = _limits(request, record.opened_at, now)
        changes["limits"] = record.limits.model_copy(update={"submit_by": ends.submit_by, "finish_by": ends.finish_by})
    return record.told(now, actor, what, "a retry", **changes)


def reopen(store: RecordStore, current: TaskTry, now: datetime) -> bool:
    """Open a generation that failed again, in a retry of a task that only waits; False when there is none to open."""

    def reopened(record: Record | None) -> Record | None:
        if record is None or not reopens(record):
            return None
        why = f"try {current.try_number} of {current.task_id}"
        after = record.told(now, current.task_id, "the next attempt follows", why, verdict=None, message="")
        done.append(True)
        return after

    done: list[bool] = []
    store.change(reopened)
    return bool(done)


def reopens(record: Record) -> bool:
    """True when a retry may submit the next attempt: the job failed, and did not say that a retry cannot help."""
    attempt = record.attempt
    if record.verdict is not Verdict.FAILED or attempt is None or attempt.verdict is not Verdict.FAILED:
        return False
    return attempt.exit_code != EXIT_NEVER and record.counted_attempts < record.limits.max_attempts
