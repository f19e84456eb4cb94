"""The service among clients that mean it harm: others are answered meanwhile, memory stays, and nothing is logged."""
import contextlib
import json
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
from test_serve import Client, Stub  # noqa: E402

from tegula_eval.program import runner  # noqa: E402

try:
    runner.library_path()
except FileNotFoundError as missing:
    pytest.skip(str(missing), allow_module_level=True)

POST = b"POST /v1/evaluations HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
TOKEN = b"Authorization: Bearer token\r\n"


class Impatient(Stub):
    """A service that gives up bodies and answers after a second, headers after `headers_s`. `descriptors`: the limit of its
    process. What it logs is in `log`."""

    def __init__(self, folder, descriptors=None, headers_s=1):
        self.log = folder.with_suffix(".log")
        environment = {**os.environ, "HEADERS_S": str(headers_s), "BODY_S": "1", "UNREAD_S": "1"}
        limit = descriptors and (lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors)))
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([sys.executable, str(Path(__file__).with_name("serve_stub.py")), str(folder)],
                                            stdout=subprocess.PIPE, stderr=log, text=True, env=environment, preexec_fn=limit)
        self.port = int(self.process.stdout.readline())

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    with Impatient(tmp_path_factory.mktemp("hostile") / "queue") as running:
        yield running
        assert running.log.read_text() == ""


def status_of(connection):
    """Of the first response; 0 where the connection was closed without one."""
    data = b""
    with contextlib.suppress(ConnectionError):
        while b"\r\n\r\n" not in data and (more := connection.recv(4096)):
            data += more
    return int(data.split()[1]) if data else 0


def is_closed(connection, within_s=10):
    connection.settimeout(within_s)
    with contextlib.suppress(ConnectionError):
        while connection.recv(1 << 16):
            pass
    return True


@pytest.mark.parametrize("token, status", [(b"", 401), (b"Authorization: Bearer guess\r\n", 401), (TOKEN, 413)])
@pytest.mark.parametrize("length", [b"", b"Content-Length: 5\r\n"])
def test_endless_bodies(stub, token, status, length):
    """A stream of chunks, whatever length was announced: answered at once, and the rest is not kept."""
    before = stub.memory_kib()
    with stub.connect() as connection:
        connection.sendall(POST + token + length + b"Transfer-Encoding: chunked\r\n\r\n")
        chunk = b"%x\r\n" % (1 << 20) + b"#" * (1 << 20) + b"\r\n"
        with contextlib.suppress(ConnectionError):
            for _ in range(200):
                connection.sendall(chunk)
        assert status_of(connection) in (status, 0)  # the answer may be lost to who does not listen
        assert stub.memory_kib() < before + (40 << 10)
    assert Client(stub.port).submit("after")[0] == 202


def test_large_bodies_are_told_so(stub):
    """A client that sends all before it reads hears why it was refused."""
    body = {"task": "t", "program": "x" * (3 << 20)}
    assert Client(stub.port)("POST", "/v1/evaluations", body)[0] == 413
    assert Client(stub.port, "guess")("POST", "/v1/evaluations", body)[0] == 401
    assert Client(stub.port)("POST", "/v1/batches", {"submissions": [body]})[0] == 202
    assert Client(stub.port)("POST", "/v1/batches", {"submissions": [body] * 6})[0] == 413


def test_slow_headers(stub):
    started = time.monotonic()
    with stub.connect() as silent, stub.connect() as slow, stub.connect() as later:
        Client(stub.port)("GET", "/v1/health")
        later.sendall(b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n")
        assert status_of(later) == 200
        ended = threading.Event()

        def drip():
            with contextlib.suppress(OSError):
                while not ended.is_set():
                    for one in (slow, later):
                        one.sendall(b"G")
                    time.sleep(0.1)

        thread = threading.Thread(target=drip)
        thread.start()
        assert all(is_closed(one) for one in (silent, slow, later))
        ended.set()
        thread.join()
    assert time.monotonic() - started < 20


def test_slow_bodies(stub):
    with stub.connect() as connection:
        connection.sendall(POST + TOKEN + b"Content-Length: 1000\r\n\r\n{")
        assert status_of(connection) == 408
        assert is_closed(connection)


def test_half_a_body(stub):
    before = Client(stub.port)("GET", "/v1/health")[2]["submissions"]
    for _ in range(20):
        with stub.connect() as connection:
            connection.sendall(POST + TOKEN + b"Content-Length: 1000\r\n\r\n" + b'{"task": "half", "program"')
    assert Client(stub.port)("GET", "/v1/health")[2]["submissions"] == before


def test_answers_that_nobody_takes(stub):
    """Many questions down one connection, whose answers are left lying."""
    client = Client(stub.port)
    key = client.submit("unread", json.dumps({"outcome": "right", "reason": "", "message": "m" * (1 << 20), "seconds": 0}))[2]["id"]
    client.wait(key)
    before = stub.memory_kib()
    with stub.connect() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
        ask = b"GET /v1/evaluations/" + key.encode() + b" HTTP/1.1\r\nHost: x\r\n" + TOKEN + b"\r\n"
        connection.settimeout(0.5)
        with contextlib.suppress(OSError):
            for _ in range(3000):
                connection.sendall(ask)
        time.sleep(4)
        assert stub.memory_kib() < before + (40 << 10)
        assert is_closed(connection)
    assert Client(stub.port)("GET", "/v1/health")[0] == 200


def test_more_connections_than_descriptors(tmp_path):
    """Half open ones and new ones all along. Their headers may take longer than this test: only the next connection ends one."""
    with Impatient(tmp_path / "queue", 200, headers_s=600) as stub:
        flood, ended, crowded = [], threading.Event(), threading.Event()

        def connect():
            while not ended.is_set():
                with contextlib.suppress(OSError):
                    one = socket.create_connection(("127.0.0.1", stub.port), timeout=1)
                    one.sendall(b"POST /v1/evaluations HTTP/1.1\r\nX: ")
                    flood.append(one)
                if len(flood) > 400:
                    crowded.set()
                    flood.pop(0).close()

        threads = [threading.Thread(target=connect) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            assert crowded.wait(60)
            answered, started = 0, time.monotonic()
            while answered < 20:
                assert time.monotonic() - started < 60
                with contextlib.suppress(OSError):
                    client = Client(stub.port)
                    client.connection.timeout = 10
                    answered += client.submit(answered)[0] == 202
        finally:
            ended.set()
            for thread in threads:
                thread.join()
            for one in flood:
                one.close()
        assert stub.log.read_text() == ""
        dropped = [line for line in Client(stub.port)("GET", "/metrics")[2].splitlines() if "dropped_total{" in line]
        assert any('reason="crowded"' in line for line in dropped), dropped


TEXT = '{"task": "t", "program": "p", "salt": "%s"}'


@pytest.mark.parametrize("body", [
    TEXT % r"\ud800", r'{"task": "t", "program": "\ud800"}', r'{"task": "t", "program": "p\udfff\ud800"}', r'{"task": "\udc00", "program": "p"}', r'{"task": "t", "program": "p", "\ud800": 1}', r'"\ud800"',
    '{"task": "t", "program": "p", "seeds": NaN}', '{"task": "t", "program": "p", "seeds": -Infinity}',
    '{"task": "t", "program": "p", "seeds": 1e999}', '{"task": "t", "program": "p", "own": NaN}', "NaN",
    '{"task": "t", "program": "p", "seeds": ' + "9" * 400 + "}", '{"task": NaN, "program": [NaN]}',
    b"\xff\xfe", b'{"task": "\xff", "program": "p"}', "", "[" * 10000 + "]" * 10000, '{"a":' * 10000, "null", "3",
    '{"task": "t", "program": {}}', '{"task": "t", "program": "p", "salt": "' + "s" * 65 + '"}'])
def test_bodies_that_are_no_submission(stub, body):
    before = Client(stub.port)("GET", "/v1/health")[2]["submissions"]
    for path, text in (("/v1/evaluations", body), ("/v1/batches", body),
                       ("/v1/batches", b'{"submissions": [' + (body if isinstance(body, bytes) else body.encode()) + b"]}")):
        status, _, told = Client(stub.port)("POST", path, text)
        assert status in (400, 422), told
        assert len(json.dumps(told)) < 5000
    assert Client(stub.port)("GET", "/v1/health")[2]["submissions"] == before


def test_a_number_beyond_all_digits(stub):
    status, _, told = Client(stub.port)("POST", "/v1/evaluations", '{"task": "t", "program": "p", "seeds": ' + "9" * 5000 + "}")
    assert status in (400, 422), told


@pytest.mark.parametrize("path", [
    "/v1/evaluations/%ff%fe", "/v1/evaluations/..%2f..%2fhealth", "/v1/evaluations/" + "a" * 3000, "/v1/evaluations/%00",
    "/v1/evaluations/x?wait=nan", "/v1/evaluations/x?wait=-1", "/v1/evaluations/x?wait=inf", "/v1/evaluations", "/v1/evaluations?id=",
    "/v1/evaluations?" + "&".join(["id=x"] * 300), "/v1/evaluations?id=%ed%a0%80", "/nothing", "/v1/evaluations/x%0d%0aX: y"])
def test_questions_of_nothing(stub, path):
    assert Client(stub.port)("GET", path.replace(" ", "%20"))[0] in (404, 422)


@pytest.mark.parametrize("request_line", [b"\x00\x01\x02\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"G" * 200000, b"GET /\r\n" + b"a: b\r\n" * 20000,
                                          POST + b"Content-Length: -1\r\n\r\n", POST + b"Content-Length: 9\r\nContent-Length: 10\r\n\r\n",
                                          POST + TOKEN + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n", POST + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n"])
def test_what_is_no_http(stub, request_line):
    with stub.connect() as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(request_line)
        assert status_of(connection) in (0, 400, 401, 408, 431)


def test_a_token_of_any_bytes(stub):
    for given in (b"\xff", b"Bearer", b"Bearer ", b"Bearer token token", b"bearer token", b"Basic token", b"Bearer \xc3\xa9", b"x" * 60000):
        with stub.connect() as connection:
            connection.sendall(POST + b"Authorization: " + given + b"\r\nContent-Length: 2\r\n\r\n{}")
            # A head of more than 16 KiB is no HTTP for the server unless it arrives in one piece.
            assert status_of(connection) in ((400, 401, 431) if len(given) > 16 << 10 else (401,))


RECORD = {"outcome": "right", "reason": "", "message": "", "seconds": 0.0}


@pytest.mark.parametrize("changed, outcome", [
    ({"message": "\ud800"}, "right"), ({"seconds": float("nan")}, "failed"), ({"timing": {"eager_ratio": float("inf")}}, "failed"),
    ({"diagnostics": [{"\udc00": float("nan")}]}, "right"), ({"cases": [{"wrong": [{"got": float("nan")}]}]}, "right"),
    ({"outcome": 3}, "failed"), ({"outcome": None}, "failed"), ({"cases": [3]}, "failed"), ({"cases": {"a": 1}}, "failed"),
    ({"diagnostics": 3}, "failed"), ({"timing": 3}, "failed"), ({"message": []}, "failed"), ({"reason": None}, "failed")])
def test_records_that_a_task_forges(stub, changed, outcome):
    """An answer always, and never one that cannot be read."""
    client = Client(stub.port)
    key = client.submit("forged", json.dumps({**RECORD, **changed}))[2]["id"]
    reward = client.wait(key)
    assert reward["outcome"] == outcome and reward["right"] == (outcome == "right")
    assert client("GET", f"/v1/evaluations?id={key}")[2]["evaluations"][0]["reward"] == reward
