"""Vertex AI's custom jobs and Cloud Logging over HTTP for thousands of jobs that run nothing: the bench's own server.

The stand-in of the local cloud runs every replica as a process, which two cores cannot do a thousand times. Here a job
is its JSON and the moment at which it ends. Lists take the same filters, through the stand-in's own parser, and come in
pages; a running job "prints" a line every so many seconds. `python -m benchmarks.job_server PORT`.
"""

from __future__ import annotations

import itertools
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from localcloud.vertex.filters import parse_filter

PROJECT_NUMBER = "100000000001"
FIELDS = ("state", "displayName", "createTime", "labels.")
PAGE_SIZE = 100
"""The most jobs a page, whatever is asked for."""

LINE_SECONDS = 10.0
"""Between two lines that a running job prints; never so while the server was not told of a time line."""

Json = dict[str, Any]


class Job:
    """One job: its JSON, and when it ends (seconds since 1970), which may be never."""

    def __init__(self, name: str, body: Json) -> None:
        self.name = name
        self.number = name.rsplit("/", 1)[-1]
        self.born = time.time()
        self.ends = float("inf")
        self._body = {**body, "name": name, "createTime": rfc3339(self.born), "startTime": rfc3339(self.born)}
        self.labels: dict[str, str] = body.get("labels", {})

    def shown(self) -> Json:
        """The CustomJob as Vertex would answer it now."""
        ended = time.time() >= self.ends
        return {**self._body, "state": "JOB_STATE_SUCCEEDED" if ended else "JOB_STATE_RUNNING"}

    def lines(self, since: float) -> Iterator[Json]:
        """The entries of Cloud Logging that it printed from `since` on."""
        first = max(1, int((since - self.born) / LINE_SECONDS))
        for number in itertools.count(first):
            moment = self.born + number * LINE_SECONDS
            if moment > min(time.time(), self.ends):
                return
            if moment >= since:
                yield entry(self.number, number, moment)


class Jobs:
    """All jobs, and how often each method was called."""

    def __init__(self) -> None:
        self.of_number: dict[str, Job] = {}
        self.of_key: dict[str, list[Job]] = {}
        self.calls: Counter[str] = Counter()

    def create(self, region: str, body: Json) -> Json:
        """Add a job, which runs at once."""
        number = str(10**18 + len(self.of_number))
        job = Job(f"projects/{PROJECT_NUMBER}/locations/{region}/customJobs/{number}", body)
        self.of_number[number] = job
        self.of_key.setdefault(job.labels.get("job-key", ""), []).append(job)
        return job.shown()

    def page(self, text: str, size: int, token: str, mask: str) -> Json:
        """A page of the list, newest first; `token` is how many were shown, `mask` the fields of each that are."""
        wanted = parse_filter(text, FIELDS)
        keys = re.findall(r'labels\.job-key="([^"]*)"', text)  # an index, as a database has
        among = [job for key in keys for job in self.of_key.get(key, [])] if keys else list(self.of_number.values())
        shown = (job.shown() for job in reversed(among))
        skipped = int(token or 0)
        matching = (job for job in shown if wanted.accepts(partial(look_up, job)))
        found = list(itertools.islice(matching, skipped, skipped + size + 1))
        more = {"nextPageToken": str(skipped + size)} if len(found) > size else {}
        fields = mask.split(",") if mask else None
        jobs = [{key: value for key, value in job.items() if fields is None or key in fields} for job in found[:size]]
        return {"customJobs": jobs, **more}

    def entries(self, body: Json) -> Json:
        """A page of lines of the jobs that the filter names, oldest first; `pageToken` is how many were shown."""
        numbers = re.findall(r'job_id="(\d+)"', body["filter"])
        since = re.search(r'timestamp>="([^"]+)"', body["filter"])
        moment = datetime.fromisoformat(since[1]).timestamp() if since else 0.0
        lines = sorted(
            (line for number in numbers for line in self.of_number[number].lines(moment)),
            key=lambda line: (line["timestamp"], line["insertId"]),
        )
        skipped, size = int(body.get("pageToken", 0)), int(body["pageSize"])
        more = {"nextPageToken": str(skipped + size)} if len(lines) > skipped + size else {}
        return {"entries": lines[skipped : skipped + size], **more}


def application(jobs: Jobs) -> Starlette:
    """The routes; what begins with /bench is for the bench alone."""

    async def create(request: Request) -> JSONResponse:
        jobs.calls["customJobs.create"] += 1
        return JSONResponse(jobs.create(request.path_params["region"], await request.json()))

    async def get(request: Request) -> JSONResponse:
        jobs.calls["customJobs.get"] += 1
        return JSONResponse(jobs.of_number[request.path_params["number"]].shown())

    async def page(request: Request) -> JSONResponse:
        jobs.calls["customJobs.list"] += 1
        asked = request.query_params
        text, size = asked.get("filter", ""), min(int(asked["pageSize"]), PAGE_SIZE)
        return JSONResponse(jobs.page(text, size, asked.get("pageToken", ""), asked.get("readMask", "")))

    async def entries(request: Request) -> JSONResponse:
        jobs.calls["entries.list"] += 1
        return JSONResponse(jobs.entries(await request.json()))

    async def calls(_: Request) -> JSONResponse:
        return JSONResponse(dict(jobs.calls))

    async def schedule(request: Request) -> JSONResponse:
        """Set when jobs end, by number; those that are not named run on."""
        ends: dict[str, float] = await request.json()
        for job in jobs.of_number.values():
            job.ends = ends.get(job.number, float("inf"))
        return JSONResponse({})

    collection = "/v1/projects/{project}/locations/{region}/customJobs"
    return Starlette(
        routes=[
            Route(collection, create, methods=["POST"]),
            Route(collection, page),
            Route(collection + "/{number}", get),
            Route("/v2/entries:list", entries, methods=["POST"]),
            Route("/bench/calls", calls),
            Route("/bench/schedule", schedule, methods=["POST"]),
        ]
    )


def entry(job: str, number: int, moment: float) -> Json:
    """One line of a job's only replica, in the shape of Cloud Logging."""
    return {
        "insertId": f"{job}-{number:09d}",
        "timestamp": rfc3339(moment),
        "severity": "INFO",
        "resource": {"type": "ml_job", "labels": {"job_id": job, "task_name": "workerpool0-0"}},
        "textPayload": json.dumps({"step": number * 10, "loss": 3.0})[1:-1],
    }


def look_up(job: Json, field: str) -> object:
    """The value of a field that filters name."""
    if field.startswith("labels."):
        return job.get("labels", {}).get(field.removeprefix("labels."))
    return job.get(field)


def rfc3339(seconds: float) -> str:
    """The moment as Google writes it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


if __name__ == "__main__":
    uvicorn.run(application(Jobs()), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", access_log=False)
