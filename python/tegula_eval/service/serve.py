"""tegula-eval serve: judging over HTTP.

  POST /v1/evaluations           {"task", "program", ...} -> 202 {"id", "state"}
  GET  /v1/evaluations/{id}      [?wait=seconds] -> {"id", "state", "reward"}
  POST /v1/batches               {"submissions": [...]} -> 202 {"evaluations": [{"id", "state"}, ...]}; all are taken or none
  GET  /v1/evaluations?id=&id=   [&wait=seconds] -> {"evaluations": [{"id", "state", "reward"}, ...]}
  GET  /v1/health                -> {"version", "workers", "submissions": {state: count}}
  GET  /v1/schema                -> JSON schema of a submission and a reward
  GET  /v1/openapi.json, /docs   -> all of this for programs and for people
  GET  /metrics                  -> counts for Prometheus

The first four need `Authorization: Bearer TOKEN`, which is looked at before a body is. A queue or a disk that is full answers
503, a client that sends too fast 429, both with `Retry-After`; a body that is too large 413, one that is too slow 408; one that
does not follow the schema 422.
"""
from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sqlite3
import sys
import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import Annotated, Callable

import anyio.to_thread
from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.security import HTTPBearer

from ..workers import pool
from . import guard, metrics
from .judging import pooled_judge
from .schemas import (MOST_IN_A_BATCH, Batch, Evaluation, Evaluations, Health, Refusal, Reward, Submission, Taken,
                      TakenBatch, plain, reward_of)
from .submissions import Full, Submissions

MAX_BODY = 2 << 20
MAX_BATCH_BODY = 16 << 20
LONGEST_WAIT_S = 30
RETRY_WRITING_S = 1.0
RETRY_STARTING_S = 5.0
SHOWN_MISTAKES = 20  # of a body that does not follow the schema
Wait = Annotated[float, Query(ge=0, le=LONGEST_WAIT_S, description="seconds to wait until all is done")]


class Rate:
    """At most `each_minute` for one client: a bucket that fills steadily. The oldest of many clients are
    forgotten."""

    def __init__(self, each_minute: int, most_clients: int = 4096):
        self.each_minute, self.most_clients = each_minute, most_clients
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def seconds_until_allowed(self, client: str, count: int = 1) -> float:
        """A batch of more than a minute's is allowed once the bucket is full."""
        with self._lock:
            now, wanted = time.monotonic(), min(count, self.each_minute)
            left, since = self._buckets.pop(client, (float(self.each_minute), now))
            left = min(self.each_minute, left + (now - since) * self.each_minute / 60)
            allowed = left >= wanted
            self._buckets[client] = (left - count if allowed else left, now)
            if len(self._buckets) > self.most_clients:
                self._buckets.popitem(last=False)
            return 0 if allowed else (wanted - left) * 60 / self.each_minute


class Service:
    """The queue and the threads that work it off. `judge(submission)` gives a record of judge/evaluate.py."""

    def __init__(self, folder: Path, judge: Callable[[dict], dict], workers: int, most_waiting: int, begins: bool = True):
        self.submissions = Submissions(folder, most_waiting)
        self.workers = workers
        self.counters = metrics.Counters()
        self.connections: guard.Connections | None = None
        self.restarts: Callable[[], int] = lambda: 0
        self._judge = judge
        if begins:
            self.begin()

    def begin(self) -> None:
        for _ in range(self.workers):
            threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while (one := self._until_written(self.submissions.next)) is not None:
            name, request = one
            self.counters.add("busy")
            started = time.monotonic()
            record = self._judged(request)
            self._until_written(lambda: self.submissions.answer(name, record))
            self.counters.add("busy", count=-1)
            self.counters.add("answers", record["outcome"])
            self.counters.add("seconds", count=time.monotonic() - started)

    def _judged(self, request: dict) -> dict:
        """A record that can be told: what a task's own process says may be anything. Where there is no process to judge, it
        is tried until there is one."""
        try:
            while True:
                try:
                    record = self._judge(request)
                    break
                except pool.NoWorker as error:
                    self.counters.add("no-worker")
                    print(f"tegula-eval: {error}; trying again", file=sys.stderr, flush=True)
                    time.sleep(RETRY_STARTING_S)
            reward_of(record)
            return record
        except Exception as error:  # a defect of the service must not take the queue with it: it is the answer
            return {"outcome": "failed", "reason": type(error).__name__, "message": str(error)[:2000],
                    "seconds": 0.0}

    def _until_written(self, function):
        """On a full disk a worker waits with its answer until there is room."""
        while True:
            try:
                return function()
            except sqlite3.OperationalError:
                time.sleep(RETRY_WRITING_S)

    async def look(self, names: list[str], wait_s: float) -> list[tuple[str, dict | None] | None]:
        """As Submissions.look, of each; waits until all are done, at most so long. Whoever waits holds no thread."""
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(changed.set)

        end = loop.time() + wait_s
        with self.submissions.telling(names, tell) if wait_s else contextlib.nullcontext():
            while True:
                changed.clear()
                found = await anyio.to_thread.run_sync(lambda: [self.submissions.look(name) for name in names])
                if loop.time() >= end or all(one is None or one[0] == "done" for one in found):
                    return found
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(changed.wait(), end - loop.time())

    def metrics(self) -> str:
        counts = {"waiting": 0, "running": 0, "done": 0, **self.submissions.counts()}
        of = self.counters.of
        judged, connections = of("answers"), self.connections
        return metrics.page([
            ("tegula_eval_submissions", "gauge", "Submissions in the queue's file, by state.", "state", counts),
            ("tegula_eval_answers_total", "counter", "Submissions judged by this process.", "outcome", judged),
            ("tegula_eval_judging_seconds_total", "counter", "What judging them took.", "", {"": sum(of("seconds").values())}),
            ("tegula_eval_workers", "gauge", "Workers, and those that judge.", "state",
             {"all": self.workers, "busy": sum(of("busy").values())}),
            ("tegula_eval_worker_restarts_total", "counter", "Workers that died and were started again.", "",
             {"": self.restarts()}),
            ("tegula_eval_worker_start_failures_total", "counter", "Workers that could not be started.", "",
             {"": sum(of("no-worker").values())}),
            ("tegula_eval_http_responses_total", "counter", "Responses, by status.", "code", of("responses")),
            ("tegula_eval_refused_total", "counter", "Submissions that were not taken.", "reason", of("refused")),
            ("tegula_eval_connections", "gauge", "Open connections.", "", {"": len(connections.opened) if connections else 0}),
            ("tegula_eval_connections_dropped_total", "counter", "Connections that were given up: no headers in time, an answer "
             "that nobody takes, or to make room.", "reason", of("dropped")),
            ("process_resident_memory_bytes", "gauge", "Memory of the service's own process.", "",
             {"": metrics.resident_bytes()})])


def make_app(service: Service, token: str, each_minute: int = 600):
    """An ASGI application."""
    from ..program import runner
    app = FastAPI(title="tegula-eval", version=runner.version(), openapi_url="/v1/openapi.json", redoc_url=None,
                  max_body_size=MAX_BATCH_BODY, description="Judges Tegula programs on PyTorch modules.")
    rate = Rate(each_minute)
    bearer = HTTPBearer(auto_error=False)  # for the description: guard.Guard has looked at the token before
    statuses = {status: {"model": Refusal} for status in (401, 408, 413, 422, 429, 503)}
    asking = {"dependencies": [Depends(bearer)], "responses": {status: statuses[status] for status in (401, 422)}}
    sending = {"dependencies": [Depends(bearer)], "responses": statuses, "status_code": 202}

    @app.exception_handler(RequestValidationError)
    async def does_not_follow(request: Request, error: RequestValidationError):
        """Where and why, without what was sent: that may be no text at all."""
        service.counters.add("refused", "malformed")
        return JSONResponse({"detail": [{"loc": plain(list(one["loc"])), "msg": plain(one["msg"]), "type": one["type"]}
                                        for one in error.errors()[:SHOWN_MISTAKES]]}, 422)

    def take(submissions: list[Submission], request: Request) -> list[dict]:
        client = request.client.host if request.client else ""
        wait = rate.seconds_until_allowed(client, len(submissions))
        if wait > 0:
            service.counters.add("refused", "rate")
            raise HTTPException(429, "too many submissions a minute", {"Retry-After": str(int(wait) + 1)})
        try:
            taken = service.submissions.take_all([one.model_dump() for one in submissions])
        except Full:
            service.counters.add("refused", "full")
            raise HTTPException(503, "the queue is full", {"Retry-After": "5"}) from None
        except sqlite3.OperationalError as error:  # a full disk: what is not written is not taken
            service.counters.add("refused", "disk")
            raise HTTPException(503, f"the queue cannot be written: {error}", {"Retry-After": "30"}) from None
        return [{"id": key, "state": state} for key, state in taken]

    @app.post("/v1/evaluations", response_model=Taken, max_body_size=MAX_BODY, **sending)
    def submit(body: Submission, request: Request):
        return take([body], request)[0]

    @app.post("/v1/batches", response_model=TakenBatch, max_body_size=MAX_BATCH_BODY, **sending)
    def submit_batch(body: Batch, request: Request):
        return {"evaluations": take(body.submissions, request)}

    async def found(keys: list[str], wait: float) -> list[dict]:
        told = await service.look(keys, wait)
        for key, one in zip(keys, told):
            if one is None:
                raise HTTPException(404, f"there is no such evaluation: {plain(key)[:64]}")
        return [{"id": key, "state": state, "reward": record and reward_of(record)}
                for key, (state, record) in zip(keys, told)]

    @app.get("/v1/evaluations/{key}", response_model=Evaluation, **asking)
    async def look(key: str, wait: Wait = 0):
        return JSONResponse((await found([key], wait))[0])

    @app.get("/v1/evaluations", response_model=Evaluations, **asking)
    async def look_at_all(id: Annotated[list[str], Query(min_length=1, max_length=MOST_IN_A_BATCH)], wait: Wait = 0):
        return JSONResponse({"evaluations": await found(id, wait)})

    @app.get("/v1/health", response_model=Health)
    def health():
        return {"version": runner.version(), "workers": service.workers,
                "submissions": {"waiting": 0, "running": 0, "done": 0, **service.submissions.counts()}}

    @app.get("/v1/schema")
    def schema():
        return {"submission": Submission.model_json_schema(), "reward": Reward.model_json_schema()}

    @app.get("/metrics", response_class=PlainTextResponse)
    def counts():
        return PlainTextResponse(service.metrics(), media_type=metrics.CONTENT_TYPE)

    return guard.Guard(app, token, service.counters)


def make_server(app, service: Service):
    """Uvicorn's, which gives up connections that starve others."""
    import uvicorn
    most, accepted = guard.room(service.workers)
    service.connections = guard.Connections(most, service.counters)
    return uvicorn.Server(uvicorn.Config(
        app, http=guard.protocol_of(service.connections), ws="none", log_level="error", access_log=False, timeout_keep_alive=30,
        backlog=accepted, timeout_graceful_shutdown=5))


def listen(host: str, port: int) -> socket.socket:
    return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)


def run(options) -> int:
    """Workers are there before the address is printed, and before anybody is answered."""
    import secrets
    token = os.environ.get("TEGULA_EVAL_TOKEN") or secrets.token_urlsafe(24)
    if not os.environ.get("TEGULA_EVAL_TOKEN"):
        print(f"token of this run (TEGULA_EVAL_TOKEN sets one): {token}", flush=True)
    with contextlib.closing(listen(options.host, options.port)) as place:
        guard.room(options.jobs)  # tells at once where there is none
        workers = pool.Pool(options.jobs, options.deadline, options.memory)
        try:
            judge = pooled_judge(options, secrets.token_hex(16), workers)
            service = Service(options.out, judge, options.jobs, options.queue, begins=False)
            workers.start()
            service.begin()
            service.restarts = workers.restarts
            server = make_server(make_app(service, token, options.rate), service)
            print(f"http://{options.host}:{place.getsockname()[1]}/v1", flush=True)
            server.run([place])
        finally:
            workers.stop()
    return 0
