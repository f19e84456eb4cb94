"""A client of `tegula-eval serve` for training runs. It needs Python's own library alone.

  client = Client("http://127.0.0.1:8080")                       # the token is TEGULA_EVAL_TOKEN
  reward = client.evaluate(task, program)                        # {"right", "reward", "outcome", ...}
  rewards = client.evaluate_all([{"task": ..., "program": ...}, ...])

The same question is the same submission, so that each request may be sent again: the client does so where the service cannot be
reached, is full, or says that it is asked too often, until `patience_s` have passed. Its methods may be called from any thread.
"""
from __future__ import annotations

import http.client
import json
import os
import threading
import time
import urllib.parse
from typing import Iterable, Iterator

WAIT_S = 25          # that one request waits at the service
BATCH, BATCH_BYTES = 256, 8 << 20
LOOKED_AT = 64       # ids in one request
AGAIN = (408, 429, 502, 503, 504)


class ServiceError(Exception):
    """The service refuses the request: `status`, `detail`. 0 where it cannot be reached in time."""

    def __init__(self, status: int, detail):
        self.status, self.detail = status, detail
        super().__init__(f"{status}: {detail}" if status else str(detail))


class Client:
    def __init__(self, url: str, token: str | None = None, timeout_s: float = 60, patience_s: float = 600):
        place = urllib.parse.urlsplit(url if "//" in url else f"http://{url}")
        if place.scheme not in ("http", "https") or not place.hostname:
            raise ValueError(f"no address of a service: {url}")
        kind = http.client.HTTPSConnection if place.scheme == "https" else http.client.HTTPConnection
        self._connect = lambda: kind(place.hostname, place.port, timeout=timeout_s)
        self._path = place.path.rstrip("/").removesuffix("/v1")
        self._headers = {"Authorization": f"Bearer {token or os.environ.get('TEGULA_EVAL_TOKEN', '')}",
                         "Content-Type": "application/json"}
        self.patience_s = patience_s
        self._threads = threading.local()

    def submit(self, task: str, program: str, **options) -> str:
        """The submission's id. `options`: target, seeds, own, certify, timed, salt."""
        return self._ask("POST", "/v1/evaluations", {"task": task, "program": program, **options})["id"]

    def submit_all(self, submissions: Iterable[dict]) -> list[str]:
        """Ids in the order of the submissions, which are sent in batches."""
        found = []
        for batch in _batches(submissions):
            told = self._ask("POST", "/v1/batches", {"submissions": batch})
            found += [one["id"] for one in told["evaluations"]]
        return found

    def look(self, name: str, wait_s: float = 0) -> dict | None:
        """The reward; None where it is not there after so long."""
        return self._ask("GET", f"/v1/evaluations/{urllib.parse.quote(name, '')}?wait={min(wait_s, WAIT_S):g}")["reward"]

    def rewards(self, names: list[str], timeout_s: float | None = None) -> list[dict]:
        """Of all of these, in their order. Raises TimeoutError."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        found: dict[str, dict] = {}
        while left := [name for name in dict.fromkeys(names) if name not in found][:LOOKED_AT]:
            wait = WAIT_S if end is None else min(WAIT_S, end - time.monotonic())
            if wait < 0:
                raise TimeoutError(f"{len(set(names)) - len(found)} of {len(set(names))} evaluations are not done")
            query = urllib.parse.urlencode([*(("id", name) for name in left), ("wait", f"{wait:g}")])
            for one in self._ask("GET", f"/v1/evaluations?{query}")["evaluations"]:
                if one["state"] == "done":
                    found[one["id"]] = one["reward"]
        return [found[name] for name in names]

    def evaluate(self, task: str, program: str, timeout_s: float | None = None, **options) -> dict:
        return self.rewards([self.submit(task, program, **options)], timeout_s)[0]

    def evaluate_all(self, submissions: Iterable[dict], timeout_s: float | None = None) -> list[dict]:
        return self.rewards(self.submit_all(submissions), timeout_s)

    def health(self) -> dict:
        return self._ask("GET", "/v1/health")

    def _ask(self, method: str, path: str, body: dict | None = None):
        data = None if body is None else json.dumps(body).encode()
        end, pause = time.monotonic() + self.patience_s, 0.1
        while True:
            try:
                status, told, wait = self._once(method, path, data)
                if status < 300:
                    return told
                refusal = ServiceError(status, told.get("detail", told) if isinstance(told, dict) else told)
                if status not in AGAIN:
                    raise refusal
            except (OSError, http.client.HTTPException) as error:
                self._threads.connection = None
                refusal, wait = ServiceError(0, f"the service cannot be reached: {error!r}"), None
            pause = min(2 * pause, 5) if wait is None else wait
            if time.monotonic() + pause > end:
                raise refusal
            time.sleep(pause)

    def _once(self, method: str, path: str, data: bytes | None) -> tuple[int, object, float | None]:
        """Status, body, and what the service says about when to come again."""
        connection = getattr(self._threads, "connection", None)
        if connection is None:
            connection = self._threads.connection = self._connect()
        connection.request(method, self._path + path, data, self._headers)
        reply = connection.getresponse()
        text = reply.read()
        try:
            told = json.loads(text)
        except ValueError:
            told = text.decode(errors="replace")[:500]
            if reply.status < 300:  # it is cut off, or no service of this kind
                raise http.client.HTTPException(f"no JSON: {told[:100]}") from None
        wait = reply.headers.get("Retry-After", "")
        return reply.status, told, float(wait) if wait.isdigit() else None


def _batches(submissions: Iterable[dict]) -> Iterator[list[dict]]:
    batch, size = [], 0
    for one in submissions:
        here = len(json.dumps(one))
        if batch and (len(batch) == BATCH or size + here > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += here
    if batch:
        yield batch
