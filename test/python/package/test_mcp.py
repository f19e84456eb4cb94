"""`tegula mcp`, asked by the SDK's own client over standard input and output."""
import asyncio
import json
import os
import pathlib
import subprocess
import sys

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
        assert set(tools) == {"check", "explain", "run", "evaluate", "examples"}
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
            ({"program": SCALE, "sizes": {"M": 1, "N": -5}}, "N is -5"),
            ({"program": SCALE, "sizes": {"M": 1 << 20, "N": 1 << 20}}, "memory"),
            ({"program": SCALE, "kernel": "other"}, "no kernel 'other'"),
        ):
            _, _, refused = await call("run", **arguments)
            assert words in refused["error"], refused
        endless = "kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = sum(sin(x[i] * j) for j in 100000000000) }"
        _, _, stopped = await call("run", program=endless, sizes={"N": 1}, seconds=2)
        assert stopped["error"] == "it took more than 2 s"
        _, _, given = await call("run", program=SCALE, inputs={"x": [[1]]})  # the server goes on
        assert given["outputs"]["y"]["values"] == [[2]]

    converse(talk)


def test_evaluate():
    pytest.importorskip("fastapi")
    pytest.importorskip("tegula_eval")

    async def talk(call, session, hello):
        _, _, right = await call("evaluate", task=TASK, program=RIGHT)
        assert right["right"] and right["reward"] == 1 and right["outcome"] == "right", right
        _, _, wrong = await call("evaluate", task=TASK, program=WRONG)
        assert not wrong["right"] and wrong["outcome"] == "wrong" and wrong["wrong"]
        _, _, broken = await call("evaluate", task="def", program=RIGHT)
        assert broken["outcome"] == "task"

    converse(talk)


def test_without_the_sdk(tmp_path):
    (tmp_path / "mcp.py").write_text("raise ImportError('none here')")
    done = subprocess.run([COMMAND, "mcp"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={**environment(), "PYTHONPATH": f"{tmp_path}:{environment()['PYTHONPATH']}"})
    assert done.returncode == 3 and "none here" in done.stderr and done.stderr.count("\n") == 1
    assert "dev setup`" in done.stderr or "`pip install 'mcp>=2.3' numpy`" in done.stderr
    done = subprocess.run([COMMAND, "mcp"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env={**os.environ, "TEGULA_PYTHON": str(tmp_path / "absent")})
    assert done.returncode == 3 and "absent" in done.stderr
