"""tegula-eval serve: judging over HTTP.

  POST /v1/evaluations        {"task", "program", ...} -> 202 {"id", "state"}
  GET  /v1/evaluations/{id}   [?wait=seconds] -> {"id", "state", "reward"}
  GET  /v1/health             -> {"version", "workers", "submissions": {state: count}}
  GET  /v1/schema             -> JSON schema of the two bodies

Each but the last two needs `Authorization: Bearer TOKEN`. A queue or a disk that is full answers 503, a client that sends too
fast 429, both with `Retry-After`; a body that is too large 413; one that does not follow the schema 422.
"""
from __future__ import annotations

import hmac
import os
import sqlite3
import threading
import time
from collections import OrderedDict
from pathlib import Path
from typing import Callable, Literal

import anyio.to_thread
from fastapi import Depends, FastAPI, HTTPException, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from .submissions import Full, Submissions

MAX_BODY = 2 << 20
LONGEST_WAIT_S = 30
RETRY_WRITING_S = 1.0


class Submission(BaseModel):
    """A program and the task that it claims to do."""
    model_config = ConfigDict(extra="forbid")
    task: str = Field(description="Python: class Model(nn.Module), get_inputs(), get_init_inputs()", min_length=1)
    program: str = Field(description="Tegula")
    target: Literal["cpu", "cuda"] = "cpu"
    seeds: int = Field(2, ge=1, le=16, description="sets of inputs for each size")
    own: bool = Field(False, description="also at the task's own sizes")
    timed: bool = Field(False, description="time it beside eager mode once it is right")
    salt: str = Field("", max_length=64, description="the same question with another salt is judged anew")


class Reward(BaseModel):
    """What a program is worth. `reward` is 1 where it is right and 0 where it is not; of the other fields a
    training run makes what it likes."""
    schema_: Literal["tegula.reward"] = Field("tegula.reward", alias="schema")
    version: Literal[1] = 1
    right: bool
    reward: float
    outcome: str
    reason: str
    message: str
    diagnostics: list[dict] = []
    wrong: list[dict] = Field([], description="the first wrong elements: index, expected, got")
    pattern: str = Field("", description="where wrong elements lie")
    speedup: float | None = Field(None, description="time of eager mode over the program's")
    seconds: float = Field(description="that judging took")


def reward_of(record: dict) -> dict:
    right = record["outcome"] == "right"
    case = record["cases"][-1] if record.get("cases") else {}
    return Reward(schema="tegula.reward", right=right, reward=float(right), outcome=record["outcome"],
                  reason=record["reason"], message=record["message"], diagnostics=record.get("diagnostics", []),
                  wrong=case.get("wrong", []), pattern=case.get("pattern", ""),
                  speedup=(record.get("timing") or {}).get("eager_ratio"),
                  seconds=record["seconds"]).model_dump(by_alias=True)


class Rate:
    """At most `each_minute` for one client: a bucket that fills steadily. The oldest of many clients are
    forgotten."""

    def __init__(self, each_minute: int, most_clients: int = 4096):
        self.each_minute, self.most_clients = each_minute, most_clients
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def seconds_until_allowed(self, client: str) -> float:
        now = time.monotonic()
        left, since = self._buckets.pop(client, (float(self.each_minute), now))
        left = min(self.each_minute, left + (now - since) * self.each_minute / 60)
        allowed = left >= 1
        self._buckets[client] = (left - allowed, now)
        if len(self._buckets) > self.most_clients:
            self._buckets.popitem(last=False)
        return 0 if allowed else (1 - left) * 60 / self.each_minute


class Service:
    """The queue and the threads that work it off. `judge(submission)` gives a record of evaluate.py."""

    def __init__(self, folder: Path, judge: Callable[[dict], dict], workers: int, most_waiting: int):
        self.submissions = Submissions(folder, most_waiting)
        self.workers = workers
        self._threads = [threading.Thread(target=self._work, args=(judge,), daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def _work(self, judge) -> None:
        while (one := self._until_written(self.submissions.next)) is not None:
            name, request = one
            try:
                record = judge(request)
            except Exception as error:  # a defect of the service must not take the queue with it: it is the answer
                record = {"outcome": "failed", "reason": type(error).__name__, "message": str(error)[:2000],
                          "seconds": 0.0}
            self._until_written(lambda: self.submissions.answer(name, record))

    def _until_written(self, function):
        """On a full disk a worker waits with its answer until there is room."""
        while True:
            try:
                return function()
            except sqlite3.OperationalError:
                time.sleep(RETRY_WRITING_S)


def make_app(service: Service, token: str, each_minute: int = 600) -> FastAPI:
    from . import runner
    app = FastAPI(title="tegula-eval", docs_url=None, redoc_url=None, openapi_url=None)
    rate = Rate(each_minute)
    look_threads = anyio.CapacityLimiter(256)  # waiting for answers must not keep others from asking

    @app.middleware("http")
    async def limit_body(request: Request, call_next):
        length = request.headers.get("content-length")
        if request.method == "POST" and (length is None or not length.isdigit() or int(length) > MAX_BODY):
            status, text = (411, "send Content-Length") if length is None else (413, f"at most {MAX_BODY} bytes")
            return JSONResponse({"detail": text}, status)
        return await call_next(request)

    def client(request: Request) -> str:
        given = request.headers.get("authorization", "")
        if not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
            raise HTTPException(401, "Authorization: Bearer TOKEN is missing or wrong",
                                {"WWW-Authenticate": "Bearer"})
        return request.client.host if request.client else ""

    @app.post("/v1/evaluations", status_code=202)
    def submit(body: Submission, name: str = Depends(client)):
        wait = rate.seconds_until_allowed(name)
        if wait > 0:
            raise HTTPException(429, "too many submissions a minute", {"Retry-After": str(int(wait) + 1)})
        try:
            key, state = service.submissions.take(body.model_dump())
        except Full:
            raise HTTPException(503, "the queue is full", {"Retry-After": "5"}) from None
        except sqlite3.OperationalError as error:  # a full disk: what is not written is not taken
            raise HTTPException(503, f"the queue cannot be written: {error}", {"Retry-After": "30"}) from None
        return {"id": key, "state": state}

    @app.get("/v1/evaluations/{key}")
    async def look(key: str, wait: float = Query(0, ge=0, le=LONGEST_WAIT_S), name: str = Depends(client)):
        found = await anyio.to_thread.run_sync(service.submissions.look, key, wait, limiter=look_threads)
        if found is None:
            raise HTTPException(404, "there is no such evaluation")
        state, record = found
        return {"id": key, "state": state, "reward": record and reward_of(record)}

    @app.get("/v1/health")
    def health():
        return {"version": runner.version(), "workers": service.workers,
                "submissions": {"waiting": 0, "running": 0, "done": 0, **service.submissions.counts()}}

    @app.get("/v1/schema")
    def schema():
        return {"submission": Submission.model_json_schema(), "reward": Reward.model_json_schema()}

    return app


def pooled_judge(options, secret: str) -> Callable[[dict], dict]:
    """Judges in the workers of a pool, as `tegula-eval kernelbench` does."""
    from . import pool
    from .cli import outcome_record
    workers = pool.Pool(options.jobs, options.deadline, options.memory)
    cache = options.out / "variants"
    cache.mkdir(parents=True, exist_ok=True)

    def judge(submission: dict) -> dict:
        request = {name: submission[name] for name in ("task", "program", "target", "seeds", "own")}
        request.update(program_name="program.tgl", threads=options.threads, bytes=options.bytes,
                       flops=int(options.flops), secret=secret, cache=str(cache.resolve()),
                       time={"turns": options.timed_turns, "compile": False} if submission["timed"] else None)
        outcome = workers.judge(request)
        return {**outcome_record(outcome), "seconds": outcome["seconds"]}

    return judge


def run(options) -> int:
    import secrets

    import uvicorn
    token = os.environ.get("TEGULA_EVAL_TOKEN") or secrets.token_urlsafe(24)
    if "TEGULA_EVAL_TOKEN" not in os.environ:
        print(f"token of this run (TEGULA_EVAL_TOKEN sets one): {token}", flush=True)
    service = Service(options.out, pooled_judge(options, secrets.token_hex(16)), options.jobs, options.queue)
    app = make_app(service, token, options.rate)
    print(f"http://{options.host}:{options.port}/v1", flush=True)
    uvicorn.run(app, host=options.host, port=options.port, log_level="warning", access_log=False)
    return 0
