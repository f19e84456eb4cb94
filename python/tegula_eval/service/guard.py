"""What stands in front of the service: who may ask, how much, and for how long.

Uvicorn and FastAPI read headers and bodies for as long as they come. So a request without the token is refused before its
body is read; a body is given up after BODY_S, headers after HEADERS_S, an answer that nobody takes after UNREAD_S; and where
there are more connections than descriptors for them, the oldest that has not said what it wants makes room for the next.
"""
from __future__ import annotations

import asyncio
import hmac
import os
import resource
import time

import h11
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

from .metrics import Counters

HEADERS_S, BODY_S, UNREAD_S = 10.0, 60.0, 60.0
KEPT_DESCRIPTORS = 64  # for files, and for workers that start
MOST_CONNECTIONS = 8192
OPEN_PATHS = {"/v1/health", "/v1/schema", "/v1/openapi.json", "/docs", "/metrics"}


class Guard:
    """ASGI: refuses what has no token, and gives up slow bodies. The rest of a body that was refused is read and dropped, so that
    a client that first sends and then reads hears why; Connections bounds for how long."""

    def __init__(self, app, token: str, counters: Counters):
        self.app, self.counters, self.body_s = app, counters, BODY_S
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope, receive, send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = dict(scope["headers"])
        is_whole = b"transfer-encoding" not in headers and headers.get(b"content-length", b"0") == b"0"
        end = time.monotonic() + self.body_s

        async def receive_in_time():
            nonlocal is_whole
            if is_whole:
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(0, end - time.monotonic()))
            except asyncio.TimeoutError:
                raise HTTPException(408, f"the body did not come within {self.body_s:g} s") from None
            is_whole = message["type"] != "http.request" or not message.get("more_body", False)
            return message

        async def send_counted(message) -> None:
            if message["type"] == "http.response.start":
                self.counters.add("responses", str(message["status"]))
            await send(message)

        given = headers.get(b"authorization", b"")
        if scope["path"] not in OPEN_PATHS and not hmac.compare_digest(given, self._expected):
            refusal = JSONResponse({"detail": "Authorization: Bearer TOKEN is missing or wrong"}, 401,
                                   {"WWW-Authenticate": "Bearer"})
            return await refusal(scope, receive, send_counted)
        await self.app(scope, receive_in_time, send_counted)


class Connections:
    """All that are open, the oldest first. Used on the event loop's thread alone."""

    def __init__(self, most: int, counters: Counters):
        self.most, self.counters = most, counters
        self.opened: dict[GuardedProtocol, None] = {}
        self._is_watching = False

    def add(self, one: GuardedProtocol) -> None:
        self.opened[one] = None
        if len(self.opened) > self.most:
            silent = (other for other in self.opened if other.asking_since is not None)
            idle = (other for other in self.opened if other.is_idle())
            victim = next(silent, None)
            if victim is one:
                victim = next(idle, one)
            self.drop(victim, "crowded")
        if not self._is_watching:
            self._is_watching = True
            one.loop.call_later(1, self._watch, one.loop)

    def remove(self, one: GuardedProtocol) -> None:
        self.opened.pop(one, None)

    def drop(self, one: GuardedProtocol, reason: str) -> None:
        self.counters.add("dropped", reason)
        self.opened.pop(one, None)
        one.transport.abort()

    def _watch(self, loop) -> None:
        now = loop.time()
        for one in list(self.opened):
            unsent = one.transport.get_write_buffer_size()
            one.unread_since = (one.unread_since or now) if unsent else None
            if one.unread_since and now - one.unread_since > UNREAD_S:
                self.drop(one, "unread")
            elif one.asking_since is None and one.is_idle() and one.conn.their_state is h11.SEND_BODY:
                one.asking_since = now  # answered, and the rest of its body is not here
            elif one.asking_since is not None and now - one.asking_since > HEADERS_S:
                self.drop(one, "headers")
        self._is_watching = bool(self.opened)
        if self._is_watching:
            loop.call_later(1, self._watch, loop)


class GuardedProtocol(H11Protocol):
    """Uvicorn's, known to `watched`."""
    watched: Connections  # uvicorn has a set `connections` of its own
    asking_since: float | None = None  # since when the headers of a request are awaited, or come
    unread_since: float | None = None

    def is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport) -> None:
        super().connection_made(transport)
        self.asking_since = self.loop.time()
        self.watched.add(self)

    def connection_lost(self, exc) -> None:
        self.watched.remove(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.asking_since is None and self.is_idle():
            self.asking_since = self.loop.time()
        super().data_received(data)
        if not self.is_idle():
            self.asking_since = None


def protocol_of(connections: Connections) -> type[GuardedProtocol]:
    return type("Protocol", (GuardedProtocol,), {"watched": connections})


def raise_descriptor_limit() -> int:
    """To what the system allows this process; how many there are then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, 4 * MOST_CONNECTIONS) if hard != resource.RLIM_INFINITY else 4 * MOST_CONNECTIONS
    if wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(wanted, soft)


def room(workers: int) -> tuple[int, int]:
    """Connections that may be open, and how many the event loop may accept at once before it looks at them. Raises
    RuntimeError where there is room for next to none."""
    left = raise_descriptor_limit() - len(os.listdir("/proc/self/fd")) - KEPT_DESCRIPTORS - 4 * workers
    accepted = max(1, min(1024, left // 4))
    most = min(MOST_CONNECTIONS, left - accepted)
    if most < 8:
        raise RuntimeError(f"too few descriptors: `ulimit -n` leaves {left} for connections")
    return most, accepted
