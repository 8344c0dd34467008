"""One job key in the model, and what the processes of Airflow do with it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.unit.steps.lifecycle_model.actor import Actor
from tests.unit.steps.lifecycle_model.model_storage import ModelStorage, Objects, met
from tests.unit.steps.lifecycle_model.model_vertex import Cloud, ModelJob, ModelVertex

from trainops import naming
from trainops.config.gpu_pools import GpuPool, GpuPools
from trainops.gcp.vertex import Vertex
from trainops.policy.lifecycle import Action
from trainops.policy.record import Record, TaskTry
from trainops.settings import Settings
from trainops.steps.end import end_job_key
from trainops.steps.gpu_queue import GpuQueue
from trainops.steps.preemption import follow_leaving
from trainops.steps.record_store import RecordStore
from trainops.steps.run import Run
from trainops.steps.services import Services
from trainops.steps.start import CandidateInput, JobRequest, begin, reopen

SETTINGS = Settings.model_validate({
    "name": "model",
    "project": "my-project",
    "project_number": "12",
    "region": "us-central1",
    "buckets": {"work": "my-bucket", "models": "my-models"},
})
OTHER_REGION = "us-east1"
POOLS = GpuPools(
    pools=[
        GpuPool(accelerator="NVIDIA_TESLA_T4", region=region, provisioning="standard", quota=2)
        for region in (SETTINGS.region, OTHER_REGION)
    ]
)
URI = naming.record_uri(SETTINGS.work, "exp", "exp-run", "submit_training")
JOB_KEY = "exp-run-submit_training"
OTHER_KEY = "other-submit_training"
OTHER_ASKS = {"NVIDIA_TESLA_T4": 2}
RUNNING_HOURS, WAITING_HOURS = 6.0, 2.0


class ModelServices(Services):
    """The services as one process sees them."""

    def __init__(self, world: World, actor: Actor | None) -> None:
        super().__init__(SETTINGS)
        self.world = world
        self.storage = ModelStorage(world.objects, actor)
        self.queue = GpuQueue(self.storage, SETTINGS.work, POOLS)
        self._actor = actor

    def now(self) -> datetime:
        return self.world.now

    def vertex(self, region: str) -> Vertex:
        return ModelVertex(self.world.cloud, self._actor, region)


class World:
    """The state that all processes share.

    :param gpus: what the job asks for; the pool has 2.
    :param lag: how long Vertex's lists take.
    :param preemptible: whether the job saves its state when asked.
    :param elsewhere: whether it may run in another region as well.
    """

    def __init__(
        self, gpus: int, lag: timedelta, deadlines: bool, preemptible: bool = False, elsewhere: bool = False
    ) -> None:
        self.now = datetime(2026, 11, 30, 12, tzinfo=UTC)
        self.objects = Objects(lambda: self.now)
        self.cloud = Cloud(lambda: self.now, lag)
        self.deadlines = deadlines
        self.preemptible = preemptible
        self.elsewhere = elsewhere
        self.request = job_request(gpus, deadlines=deadlines, preemptible=preemptible, elsewhere=elsewhere)
        self.current = TaskTry(dag_id="train_exp", run_id="r", task_id="submit_training", max_tries=2)
        self._parsed: tuple[int, Record | None] = (0, None)
        self.calm = ModelServices(self, None)
        """Services that always answer: for the model's own looks."""

    @property
    def record(self) -> Record | None:
        """The record as it is stored."""
        blob = self.objects.blobs.get(URI)
        if blob is not None and self._parsed[0] != blob.generation:
            self._parsed = (blob.generation, Record.model_validate_json(blob.data))
        return self._parsed[1]

    @property
    def existing_record(self) -> Record:
        """The record, which is there."""
        assert self.record is not None
        return self.record

    def next_try(self, *, cleared: bool = False, gpus: int | None = None) -> None:
        """Airflow is about to run the task again, as a retry or after a clear.

        :param gpus: what its code asks for now; None for what it asked before.
        """
        if gpus is not None:
            self.request = job_request(
                gpus, deadlines=self.deadlines, preemptible=self.preemptible, elsewhere=self.elsewhere
            )
        now = self.current
        more = {"max_tries": now.max_tries + 1, "clear_number": now.clear_number + 1} if cleared else {}
        self.current = now.model_copy(update={"try_number": now.try_number + 1, **more})

    def begin(self) -> None:
        """The task opens its generation, or resumes it, and goes no further."""
        begin(self.calm.storage, SETTINGS, URI, self.request, self.current, actor="task", clock=self.calm.now)

    def task(self) -> Actor:
        """A try of the task: begins or resumes, looks once, and notes that it ended, as the operator does."""
        current = self.current

        def work(actor: Actor) -> Action:
            services = ModelServices(self, actor)
            begin(services.storage, SETTINGS, URI, self.request, current, actor="task", clock=services.now)
            run = self._run(services, actor)
            action = run.advance()
            ended = run.store.load().owner.model_copy(update={"ended": "submitted"})
            run.store.change(lambda now: now and now.model_copy(update={"owner": ended}))
            return action

        return Actor("task", work)

    def look(self) -> Actor:
        """A sensor, a trigger or anybody else reconciles once."""
        return Actor("sensor", lambda actor: self._run(ModelServices(self, actor), actor).advance())

    def sensor_retry(self) -> Actor:
        """A retry of the task that waits: opens a generation that failed again, and looks."""

        def work(actor: Actor) -> Action:
            services = ModelServices(self, actor)
            run = self._run(services, actor)
            reopen(run.store, self.current.model_copy(update={"task_id": "wait_for_training"}), services.now())
            return run.advance()

        return Actor("sensor", work)

    def kill(self, generation: int) -> Actor:
        """A trigger whose task was marked failed ends the generation that it followed, as `on_kill` does."""

        def work(actor: Actor) -> Action | None:
            run = self._run(ModelServices(self, actor), actor)
            record = run.store.load()
            if record.generation != generation or record.verdict is not None:
                return None
            run.cancel("the task was marked failed", generation=generation)
            return run.advance()

        return Actor("trigger", work)

    def end(self) -> Actor:
        """The run's teardown, or housekeeping: follows the end until it is confirmed."""

        def work(actor: Actor) -> None:
            services = ModelServices(self, actor)
            store = RecordStore(services.storage, URI)
            end_job_key(
                services, store, actor="end_run", why="the run is over", say=_silent,
                pause=lambda _seconds: _pause(actor),
            )  # fmt: skip

        return Actor("end_run", work)

    def follow(self) -> Actor:
        """Somebody whose run waits for GPUs follows the jobs that were asked to leave."""

        def work(actor: Actor) -> list[str]:
            services = ModelServices(self, actor)
            ledger = services.queue.tick().ledger
            follow_leaving(services, ledger, actor="another run", say=_silent)
            return list(ledger.leaving())

        return Actor("follower", work)

    def preempted(self, job: ModelJob) -> None:
        """A job's trainer saves, leaves its marker where it was told to look for orders, and ends well."""
        job.preempted = True
        self.objects.write(f"{job.control}/preempted", b"{}", None)
        self.cloud.end(job, "SUCCEEDED")

    def other_takes_gpus(self, *, urgent: bool = False) -> None:
        """Another job key asks for GPUs, and binds them when it gets them."""
        asks = {"job_key": OTHER_KEY, "accelerators": OTHER_ASKS, "attempts": (), "preemptible": False}
        other = self.existing_record.model_copy(update={**asks, "priority": 100 if urgent else 50})
        if self.existing_record.accelerators:
            self.calm.queue.enqueue(other, "gs://my-bucket/other.json")
            if self.calm.queue.lease(other, "gs://my-bucket/other.json").state == "reserved":
                self.calm.queue.bind(OTHER_KEY, "projects/12/locations/us-central1/customJobs/other")

    def other_gives_back(self) -> None:
        """The other job key has ended."""
        self.calm.queue.release(OTHER_KEY)

    def leases(self) -> dict[str, dict[str, int]]:
        """Who holds which GPUs, by the ledger."""
        ledger, _ = self.calm.queue.snapshot()
        return {key: lease.gpus for key, lease in ledger.leases.items()}

    def requests(self) -> set[str]:
        """Whose requests stand in the queue, those of silent owners as well."""
        folder = f"{SETTINGS.work}/queue/requests/"
        return {uri.removeprefix(folder).removesuffix(".json") for uri in self.objects.blobs if uri.startswith(folder)}

    def _run(self, services: Services, actor: Actor) -> Run:
        return Run(services, URI, actor=actor.name, say=_silent)


def _silent(_line: str) -> None: ...


def _pause(actor: Actor) -> None:
    met(actor, "pause", lambda: None)


def job_request(
    gpus: int, *, deadlines: bool, priority: int = 50, preemptible: bool | None = None, elsewhere: bool = False
) -> JobRequest:
    """What the task asks for: one machine with so many GPUs."""
    master: dict[str, Any] = {"imageUri": "example/image"}
    if gpus:
        master["acceleratorConfig"] = {"type": "NVIDIA_TESLA_T4", "count": gpus}
    return JobRequest(
        job_key=JOB_KEY, run_key="exp-run", experiment="exp", task="submit_training", display_name="exp-run",
        training_input={
            "scaleTier": "CUSTOM", "masterType": "n1-standard-8", "region": "us-central1", "masterConfig": master,
        },
        candidates=(CandidateInput(training_input={"region": OTHER_REGION}),) if elsewhere else (),
        priority=priority, preemptible=preemptible, max_waiting_hours=WAITING_HOURS if deadlines else None,
        max_running_hours=RUNNING_HOURS if deadlines else None,
    )  # fmt: skip
