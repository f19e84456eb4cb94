"""The wire of `tegula mcp`: what comes on standard input that is no JSON-RPC request gets the error that JSON-RPC has for it.

The SDK's own reader drops such lines. This one stands before it and passes on only what the SDK takes.
"""

import json
import os
from contextlib import asynccontextmanager
from typing import Any, AsyncIterator, Optional

import anyio.to_thread
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCNotification, jsonrpc_message_adapter
from pydantic import ValidationError
from pydantic_core import from_json

MOST_BYTES = 64 << 20  # of a line


class Lines:
    """Lines of a descriptor that are messages, as the SDK iterates over them; the others are answered by `refuse`."""

    def __init__(self, descriptor: int):
        self._file = open(descriptor, "rb", closefd=False)
        self.refuse: Any = None

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await self._read():
            if len(line) == MOST_BYTES and not line.endswith(b"\n"):
                while (rest := await self._read()) and not rest.endswith(b"\n"):
                    pass
                await self._refuse(None, INVALID_REQUEST, f"a message has at most {MOST_BYTES} bytes")
            elif line.strip() and await self._is_message(line):
                yield line.decode(errors="replace")

    async def _read(self) -> bytes:
        return await anyio.to_thread.run_sync(self._file.readline, MOST_BYTES)

    async def _is_message(self, line: bytes) -> bool:
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            if first["type"] == "json_invalid":
                value = _lenient(line)  # so that who asks hears which request it was
                code, words = (PARSE_ERROR, "no JSON") if value is None else (INVALID_REQUEST, "no message")
                await self._refuse(_id_of(value), code, f"{words}: {first['ctx']['error']}")
                return False
            message = None
        value = from_json(line)
        if message is None or isinstance(message, JSONRPCNotification) and "id" in value:
            await self._refuse(_id_of(value), INVALID_REQUEST, _mistake(value))
            return False
        return True

    async def _refuse(self, id: Any, code: int, words: str) -> None:
        error = JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=words))
        await self.refuse(SessionMessage(error))


def _no_number(name: str) -> Any:
    raise ValueError(name)


def _lenient(line: bytes) -> Any:
    """JSON that is too deep for the SDK's reader, or has half a surrogate pair in a string. None where it is none."""
    try:
        return json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None


def _id_of(value: Any) -> Optional[Any]:
    found = value.get("id") if isinstance(value, dict) else None
    return found if isinstance(found, (int, str)) and not isinstance(found, bool) else None


def _mistake(value: Any) -> str:
    if isinstance(value, list):
        return "a batch: each message is a line of its own"
    if not isinstance(value, dict):
        return "a message is an object"
    if value.get("jsonrpc") != "2.0":
        return "\"jsonrpc\" is \"2.0\""
    if "id" in value and _id_of(value) is None:
        return "\"id\" is a string or an integer"
    if not isinstance(value.get("method", ""), str):
        return "\"method\" is a string"
    if not isinstance(value.get("params", {}), dict):
        return "\"params\" is an object"
    return "neither a request nor a notification nor a response"


@asynccontextmanager
async def streams() -> AsyncIterator[tuple[Any, Any]]:
    """As the SDK's stdio_server, which takes care of standard output; children do not see standard input either."""
    wire, null = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    lines = Lines(wire)
    async with stdio_server(stdin=lines) as (read, write):  # type: ignore[arg-type]
        lines.refuse = write.send
        yield read, write
