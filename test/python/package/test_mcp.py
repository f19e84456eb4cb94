"""`tegula mcp`, asked by the SDK's own client over standard input and output."""
import asyncio
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import pytest

import tegula

pytest.importorskip("mcp.server.mcpserver")
COMMAND = os.environ.get("TEGULA_COMMAND")
pytestmark = pytest.mark.skipif(not COMMAND, reason="no command beside the package")

SCALE = "kernel scale(x: T[M, N], s: f32 = 2.0) -> (y: T[M, N]) { y[i, j] = s * x[i, j] }"
TASK = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2

rows, columns = 64, 32

def get_inputs():
    return [torch.randn(rows, columns)]

def get_init_inputs():
    return []
"""
RIGHT = "kernel k(x: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = 2 * relu(x[i, j]) }"
WRONG = "kernel k(x: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = 3 * relu(x[i, j]) }"


def environment():
    package = str(pathlib.Path(tegula.__file__).parents[1])
    return {**os.environ, "TEGULA_PYTHON": sys.executable, "PYTHONPATH": package}


def converse(talk):
    """`talk(call, session)` with a server; `call(tool, **arguments)` gives (is_error, text, structured)."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    async def go():
        server = StdioServerParameters(command=COMMAND, args=["mcp"], env=environment())
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            hello = await session.initialize()

            async def call(tool, **arguments):
                result = await session.call_tool(tool, arguments)
                text = "".join(one.text for one in result.content if one.type == "text")
                return result.is_error, text, None if result.is_error else (
                    result.structured_content or json.loads(text))

            return await talk(call, session, hello)

    return asyncio.run(asyncio.wait_for(go(), 300))


def test_tools_that_need_the_compiler_alone():
    async def talk(call, session, hello):
        assert hello.server_info.name == "tegula" and "kernel" in hello.instructions
        tools = {one.name: one for one in (await session.list_tools()).tools}
        assert set(tools) == {"check", "fix", "explain", "run", "evaluate", "examples"}
        assert all(one.description and one.input_schema["properties"] for one in tools.values())

        _, _, good = await call("check", program=SCALE)
        assert good["ok"] and not good["diagnostics"]
        _, _, bad = await call("check", program=SCALE.replace("x[i, j]", "x[i]"))
        assert not bad["ok"] and bad["diagnostics"][0]["code"] == "E0301" and "E0301" in bad["text"]
        assert bad["diagnostics"][0]["span"]["file"] == "program.tgl"

        _, text, result = await call("explain", code="E0301")
        assert "Wrong:" in text and "Right:" in text
        failed, text, _ = await call("explain", code="E9999")
        assert failed and "there is no code" in text
        failed, text, _ = await call("explain", code="--help")  # is no option
        assert failed and "there is no code" in text

        _, text, _ = await call("examples", task="a softmax over rows, then a matrix product", count=2)
        assert "softmax" in text and text.count("kernel ") > 2

    converse(talk)


def nested(depth):
    return [nested(depth - 1)] if depth else 1


def test_fix():
    async def talk(call, session, hello):
        _, _, fixed = await call("fix", program=SCALE.replace("s: f32", "s: float32"))
        assert fixed["ok"] and fixed["changed"] and fixed["program"].strip() == SCALE and not fixed["diagnostics"], fixed
        assert "fixed E0206: write 'f32'" in fixed["text"]
        _, _, same = await call("fix", program=SCALE)
        assert same["ok"] and not same["changed"] and same["program"] == SCALE
        guess = "kernel k(x: f32[M]) -> (y: f32[M]) { y[i] = rellu(x[i]) }"
        _, _, left = await call("fix", program=guess)
        assert not left["ok"] and left["diagnostics"][0]["code"] == "E0204"
        _, _, fixed = await call("fix", program=guess, maybe=True)
        assert fixed["ok"] and "relu(" in fixed["program"]

    converse(talk)


def test_annotations_and_unknown_arguments():
    async def talk(call, session, hello):
        for one in (await session.list_tools()).tools:
            hints = one.annotations
            assert hints.title == one.title and hints.read_only_hint == (one.name != "evaluate")
            assert hints.destructive_hint is False and hints.open_world_hint is False and hints.idempotent_hint
            assert one.input_schema["additionalProperties"] is False and "context" not in one.input_schema["properties"]
            failed, text, _ = await call(one.name, **{**{name: "x" for name in one.input_schema["required"]}, "unknown": 1})
            assert failed and "unknown" in text and "Extra inputs are not permitted" in text

    converse(talk)


def test_progress():
    async def talk(call, session, hello):
        heard = []

        async def hear(progress, total, message):
            heard.append((progress, message))

        endless = "kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = sum(sin(x[i] * j) for j in 100000000000) }"
        result = await session.call_tool("run", {"program": endless, "sizes": {"N": 1}, "seconds": 4}, progress_callback=hear)
        assert "took more than" in result.structured_content["error"]
        assert len(heard) >= 3 and all(message == "run" for _, message in heard)
        assert [one for one, _ in heard] == sorted({one for one, _ in heard})  # each more than the one before

    converse(talk)


def test_run():
    async def talk(call, session, hello):
        _, _, given = await call("run", program=SCALE, inputs={"x": [[1, 2, 3]]}, values={"s": 0.5})
        assert given["outputs"] == {"y": {"dtype": "float32", "shape": [1, 3], "values": [[0.5, 1.0, 1.5]]}}
        _, _, drawn = await call("run", program=SCALE, sizes={"M": 2, "N": 3}, types={"T": "f64"}, seed=7)
        x, y = (np.array(drawn[kind][name]["values"]) for kind, name in (("inputs", "x"), ("outputs", "y")))
        assert x.shape == (2, 3) and np.array_equal(y, 2 * x) and drawn["outputs"]["y"]["dtype"] == "float64"
        _, _, large = await call("run", program=SCALE, sizes={"M": 100, "N": 100})
        assert large["outputs"]["y"]["left_out"] == 5904 and len(large["outputs"]["y"]["values"]) == 4096
        _, _, infinite = await call("run", inputs={"x": [1.0, -1.0, 0.0]},
                                    program="kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] / 0.0 }")
        assert infinite["outputs"]["y"]["values"] == ["inf", "-inf", "nan"]
        _, _, state = await call("run", program="kernel k(c: inout f32[N]) { c[i] = c[i] + 1.0 }",
                                 inputs={"c": [1, 2]})
        assert state["outputs"]["c"]["values"] == [2, 3]
        halves = "kernel k(x: f32[M, 2*P + 1]) -> (y: f32[P]) { y[i] = x[0, 2*i] }"
        _, _, half = await call("run", program=halves, sizes={"M": 1, "P": 2})
        assert np.shape(half["inputs"]["x"]["values"]) == (1, 5) and np.shape(half["outputs"]["y"]["values"]) == (2,)
        for arguments, words in (
            ({"program": halves, "sizes": {"M": 1}}, "does not say P"),
            ({"program": SCALE.replace("x[i, j]", "x[i]")}, "E0301"),
            ({"program": SCALE}, "does not say M"),
            ({"program": SCALE, "inputs": {"z": [1]}}, "no parameter 'z'"),
            ({"program": SCALE, "inputs": {"x": [[1, 2], [3]]}}, "no array of f32"),
            ({"program": SCALE, "inputs": {"x": [1, 2]}}, "'x'"),
            ({"program": SCALE, "sizes": {"M": 1 << 20, "N": 1 << 20}}, "memory"),
            ({"program": SCALE, "kernel": "other"}, "no kernel 'other'"),
        ):
            _, _, refused = await call("run", **arguments)
            assert words in refused["error"], refused
        for arguments, words in (
            ({"sizes": {"M": 1, "N": -5}}, "greater than or equal to 0"), ({"seed": -1}, "greater than or equal to 0"),
            ({"seed": 1 << 70}, "less than"), ({"sizes": {"M": 1, "N": 1 << 70}}, "less than"), ({"seconds": 0}, "greater than"),
            ({"sizes": 3}, "dictionary"), ({"size": {"M": 1, "N": 2}}, "Extra inputs are not permitted"),
        ):
            failed, text, _ = await call("run", program=SCALE, **arguments)
            assert failed and words in text and "Traceback" not in text, text
        for arguments in ({"sizes": {"M": (1 << 63) - 1, "N": (1 << 63) - 1}}, {"sizes": {"M": 1 << 40, "N": 1}}, {"types": {"T": "f3"}},
                          {"inputs": {"x": [[10**400]]}}, {"inputs": {"x": "text"}}, {"inputs": {"x": {"a": []}}}, {"values": {"s": 10**400}},
                          {"values": {"s": {"a": 1}}}, {"values": {"s": None}, "sizes": {"M": "1"}}, {"kernel": ""}, {"types": {"T": ""}},
                          {"inputs": {"x": nested(70)}}, {"inputs": {"x": None}}, {"values": {"x": [[1]]}}):
            failed, text, refused = await call("run", program=SCALE, **arguments)
            assert failed or refused["error"], refused
            assert "Traceback" not in text and "File \"" not in text, text
        endless = "kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = sum(sin(x[i] * j) for j in 100000000000) }"
        _, _, stopped = await call("run", program=endless, sizes={"N": 1}, seconds=2)
        assert stopped["error"] == "it took more than 2 s"
        _, _, given = await call("run", program=SCALE, inputs={"x": [[1]]})  # the server goes on
        assert given["outputs"]["y"]["values"] == [[2]]

    converse(talk)


def test_a_request_that_nothing_has_thought_of():
    """Its child tells what was raised, and does not die of telling it."""
    done = subprocess.run([sys.executable, "-m", "tegula._mcp_run"], input=json.dumps({"program": SCALE}), capture_output=True,
                          text=True, env=environment())
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"error": "KeyError: 'kernel'", "diagnostics": []} and "Traceback" in done.stderr


def test_evaluate():
    pytest.importorskip("fastapi")
    pytest.importorskip("tegula_eval")

    async def talk(call, session, hello):
        heard = []

        async def hear(progress, total, message):
            heard.append(message)

        await session.call_tool("evaluate", {"task": TASK, "program": RIGHT}, progress_callback=hear)
        assert heard[0] == "waiting for a worker" and len(set(heard)) > 2, heard
        _, _, right = await call("evaluate", task=TASK, program=RIGHT)
        assert right["right"] and right["reward"] == 1 and right["outcome"] == "right", right
        _, _, wrong = await call("evaluate", task=TASK, program=WRONG)
        assert not wrong["right"] and wrong["outcome"] == "wrong" and wrong["wrong"]
        _, _, broken = await call("evaluate", task="def", program=RIGHT)
        assert broken["outcome"] == "task"

    converse(talk)


class Wire:
    """A server as a process that is sent bytes."""

    def __init__(self, **options):
        self.process = subprocess.Popen([COMMAND, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=environment(), **options)
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        assert self.ask({"id": "hello", "method": "initialize", "params": hello})["result"]
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        data = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def answer(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, message):
        self.send(message)
        return self.answer()

    def call(self, number, tool, **arguments):
        self.send({"id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            pipe.close()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()


ENDLESS = "kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = sum(sin(x[i] * j) for j in 100000000000) }"


@pytest.fixture(scope="module")
def wire():
    with Wire() as running:
        yield running


@pytest.mark.parametrize("line, code, number", [
    (b"this is no JSON", -32700, None), (b"{", -32700, None), (b'{"jsonrpc": "2.0", "id": 7, "method": "ping"', -32700, None),
    (b"\xff\xfe", -32700, None), (b'{"jsonrpc": "2.0", "id": 1, "method": "\\ud800"}', -32600, 1),
    (b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"x": ' + b"[" * 300 + b"]" * 300 + b"}}", -32600, 7),
    (b"[" * 100000, -32700, None), (b"[]", -32600, None), (b"3", -32600, None), (b"null", -32600, None), (b'"ping"', -32600, None),
    (b'[{"jsonrpc": "2.0", "id": 7, "method": "ping"}]', -32600, None), (b"{}", -32600, None),
    (b'{"id": 7, "method": "ping"}', -32600, 7), (b'{"jsonrpc": "1.0", "id": 7, "method": "ping"}', -32600, 7),
    (b'{"jsonrpc": "2.0", "id": "seven"}', -32600, "seven"), (b'{"jsonrpc": "2.0", "id": 7, "method": 3}', -32600, 7),
    (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', -32600, None), (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600, None),
    (b'{"jsonrpc": "2.0", "id": [7], "method": "ping"}', -32600, None), (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600, None),
    (b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": [1]}', -32600, 7),
    (b'{"jsonrpc": "2.0", "id": 7, "method": "nothing"}', -32601, 7),
    (b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {}}', -32602, 7),
    (b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": 3}}', -32602, 7),
])
def test_what_is_no_request(wire, line, code, number):
    told = wire.ask(line)
    assert (told["jsonrpc"], told["id"], told["error"]["code"]) == ("2.0", number, code), told
    assert told["error"]["message"] and "Traceback" not in json.dumps(told)
    assert wire.ask({"id": 8, "method": "ping"}) == {"jsonrpc": "2.0", "id": 8, "result": {}}


def test_blank_lines_are_nothing(wire):
    wire.send(b"\n  \n\r")
    assert wire.ask({"id": 8, "method": "ping"})["id"] == 8


def children(pid):
    found = {}
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (place / "stat").read_bytes().rsplit(b")", 1)[1].split()[:2]
        except OSError:
            continue
        if state != b"Z":
            found.setdefault(int(parent), []).append(int(place.name))
    mine = list(found.get(pid, []))
    for one in mine:
        mine += found.get(one, [])
    return mine


def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("tool", ["run", "evaluate"])
@pytest.mark.parametrize("end", ["close", "kill", "terminate", "call off"])
def test_a_child_ends_with_its_session(tool, end):
    if tool == "evaluate":
        pytest.importorskip("tegula_eval")
    with Wire() as wire:
        arguments = {"program": ENDLESS, "sizes": {"N": 1}, "seconds": 600} if tool == "run" else \
            {"task": "import time\ntime.sleep(600)\n" + TASK, "program": RIGHT}
        wire.call(1, tool, **arguments)
        wait_for(lambda: children(wire.process.pid), 60)
        time.sleep(2)
        started = children(wire.process.pid)
        assert started
        if end == "call off":
            wire.send({"method": "notifications/cancelled", "params": {"requestId": 1, "reason": "test"}})
        else:
            {"close": wire.process.stdin.close, "kill": wire.process.kill, "terminate": wire.process.terminate}[end]()
            wire.process.wait(20)
        wait_for(lambda: not any(pathlib.Path(f"/proc/{pid}/stat").exists() and
                                 pathlib.Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()[0] != b"Z" for pid in started))
        if end == "call off":
            while wire.ask({"id": 8, "method": "ping"})["id"] != 8:
                pass
            wire.call(2, "check", program=SCALE)
            assert wire.answer()["result"]["structuredContent"]["ok"]


def test_without_the_sdk(tmp_path):
    (tmp_path / "mcp.py").write_text("raise ImportError('none here')")
    done = subprocess.run([COMMAND, "mcp"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={**environment(), "PYTHONPATH": f"{tmp_path}:{environment()['PYTHONPATH']}"})
    assert done.returncode == 3 and "none here" in done.stderr and done.stderr.count("\n") == 1
    assert "dev setup`" in done.stderr or "`pip install 'mcp>=2.3' numpy`" in done.stderr
    done = subprocess.run([COMMAND, "mcp"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={**os.environ, "TEGULA_PYTHON": str(tmp_path / "absent")})
    assert done.returncode == 3 and "absent" in done.stderr
