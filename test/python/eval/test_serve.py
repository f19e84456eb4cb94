"""The service: what it refuses, a thousand submissions at once, a kill in the middle."""
import http.client
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import RIGHT, SCALE

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
from tegula_eval.program import runner  # noqa: E402
from tegula_eval.service import serve  # noqa: E402

try:
    runner.library_path()
except FileNotFoundError as missing:
    pytest.skip(str(missing), allow_module_level=True)


class Client:
    """Keeps one connection."""

    def __init__(self, port, token="token"):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def __call__(self, method, path, body=None, **headers):
        text = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        self.connection.request(method, path, text, {**self.headers, **headers})
        reply = self.connection.getresponse()
        told = reply.read()
        is_json = reply.headers["content-type"] == "application/json"
        return reply.status, dict(reply.getheaders()), json.loads(told) if is_json else told.decode()

    def submit(self, salt, program="p"):
        return self("POST", "/v1/evaluations", {"task": "t", "program": program, "salt": str(salt)})

    def wait(self, key):
        while True:
            status, _, body = self("GET", f"/v1/evaluations/{key}?wait=30")
            assert status == 200
            if body["state"] == "done":
                return body["reward"]


class Stub:
    def __init__(self, folder, *limits):
        self.process = subprocess.Popen([sys.executable, str(Path(__file__).with_name("serve_stub.py")), str(folder),
                                         *map(str, limits)], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def memory_kib(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    with Stub(tmp_path_factory.mktemp("serve") / "queue") as running:
        yield running


def test_who_may_ask(stub):
    for token in ("", "Token", "tokens"):
        status, headers, _ = Client(stub.port, token)("GET", "/v1/evaluations/0")
        assert status == 401 and headers["www-authenticate"] == "Bearer"
    assert Client(stub.port, "")("GET", "/v1/health")[0] == 200


@pytest.mark.parametrize("body, status", [
    ("{", 422), ("[]", 422), ({"task": "t"}, 422), ({"task": "t", "program": 3}, 422),
    ({"task": "", "program": "p"}, 422), ({"task": "t", "program": "p", "unknown": 1}, 422),
    ({"task": "t", "program": "p", "target": "tpu"}, 422), ({"task": "t", "program": "p", "seeds": 0}, 422),
    ({"task": "t", "program": "x" * (3 << 20)}, 413),
])
def test_bodies_that_are_refused(stub, body, status):
    before = Client(stub.port)("GET", "/v1/health")[2]["submissions"]
    assert Client(stub.port)("POST", "/v1/evaluations", body)[0] == status
    assert Client(stub.port)("GET", "/v1/health")[2]["submissions"] == before


def test_submission_and_answer(stub):
    client = Client(stub.port)
    status, _, body = client.submit("new")
    assert status == 202 and body["state"] in ("waiting", "running")
    reward = client.wait(body["id"])
    assert (reward["schema"], reward["right"], reward["reward"]) == ("tegula.reward", True, 1.0)
    # The same question again is the same submission; another salt is not.
    assert client.submit("new")[2] == {"id": body["id"], "state": "done"}
    assert client.submit("other")[2]["id"] != body["id"]
    assert client("GET", "/v1/evaluations/none")[0] == 404
    assert client("GET", f"/v1/evaluations/{body['id']}?wait=1000")[0] == 422
    assert set(client("GET", "/v1/schema")[2]) == {"submission", "reward"}


def test_judge_that_fails_is_an_answer(stub):
    client = Client(stub.port)
    reward = client.wait(client.submit("fails", "raise")[2]["id"])
    assert (reward["outcome"], reward["reason"], reward["reward"]) == ("failed", "ValueError", 0.0)
    assert client.wait(client.submit("passes")[2]["id"])["right"]


def test_full_queue_and_fast_clients(tmp_path):
    with Stub(tmp_path / "queue", 3, 10) as stub:
        client = Client(stub.port)
        told = [client.submit(number)[:2] for number in range(200)]
        statuses = {status for status, _ in told}
        assert 429 in statuses and statuses <= {202, 429, 503}
        assert all(int(headers["retry-after"]) >= 1 for status, headers in told if status in (429, 503))
    with Stub(tmp_path / "other", 1) as stub:
        client = Client(stub.port)
        for salt in (1, 2):
            hold(client, salt)
        told = [client.submit(salt)[:2] for salt in (3, 4, 5)]
        assert [status for status, _ in told] == [202, 503, 503] and int(told[1][1]["retry-after"]) >= 1


def hold(client, salt):
    """Has one of the two judges be busy with it until the service is killed."""
    key = client.submit(salt, "hold")[2]["id"]
    while client("GET", f"/v1/evaluations/{key}")[2]["state"] != "running":
        time.sleep(0.01)
    return key


def submit_all(port, numbers, keys, failures, waits={}):
    """Submits each, until the service is gone; `waits`: the event that some wait for."""
    client = Client(port)
    for number in numbers:
        if number in waits:
            waits[number].wait()
        try:
            status, _, body = client.submit(number)
            assert status == 202
            keys[number] = body["id"]
        except (OSError, http.client.HTTPException):
            failures.append(number)
            return


def in_threads(count, function):
    threads = [threading.Thread(target=function, args=(one,)) for one in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_thousand_from_many_clients(stub):
    first, second = {}, {}
    others = Client(stub.port)("GET", "/v1/health")[2]["submissions"]["done"]
    for keys, base in ((first, 0), (second, 1000)):
        in_threads(16, lambda one: submit_all(stub.port, range(base + one, base + 1000, 16), keys, []))
        answers = {}
        in_threads(16, lambda one: answers.update(
            {number: Client(stub.port).wait(keys[number]) for number in range(base + one, base + 1000, 16)}))
        assert len(keys) == len(set(keys.values())) == len(answers) == 1000
        assert len({reward["message"] for reward in answers.values()}) == 1000
        if base == 0:
            before = stub.memory_kib()
    assert stub.memory_kib() < before + (16 << 10)  # a thousand more cost nothing
    done = Client(stub.port)("GET", "/v1/health")[2]["submissions"]
    assert done == {"waiting": 0, "running": 0, "done": others + 2000}


def test_killed_in_the_middle(tmp_path):
    """While many submit, one is judged and others wait: all are answered once, and what was answered stays."""
    keys, failures, killed = {}, [], threading.Event()
    with Stub(tmp_path / "queue") as stub:
        client = Client(stub.port)
        held = hold(client, "held")
        sending = threading.Thread(target=in_threads, args=(8, lambda one: submit_all(
            stub.port, range(one, 500, 8), keys, failures, dict.fromkeys(range(300, 500), killed))))
        sending.start()
        while not {0, 1} <= keys.keys():
            time.sleep(0.001)
        early = {key: client.wait(key) for key in (keys[0], keys[1])}
        while len(keys) < 150:
            time.sleep(0.001)
        stub.process.kill()
        killed.set()
        sending.join()
    assert failures  # it was in the middle
    with Stub(tmp_path / "queue") as stub:
        taken = dict(keys)
        in_threads(8, lambda one: submit_all(stub.port, range(one, 500, 8), keys, []))
        assert all(keys[number] == key for number, key in taken.items())
        client = Client(stub.port)
        answers = {key: client.wait(key) for key in [held, *keys.values()]}
        assert len(answers) == 501 and all(answers[key] == reward for key, reward in early.items())
        assert client("GET", "/v1/health")[2]["submissions"]["done"] == 501


def test_a_full_disk(tmp_path, monkeypatch):
    """What cannot be written is not taken, and says so; what was taken is answered once there is room."""
    from fastapi.testclient import TestClient
    monkeypatch.setattr(serve, "RETRY_WRITING_S", 0.01)
    judged, goes_on = [], threading.Event()

    def judge(submission):
        goes_on.wait()
        judged.append(submission["salt"])
        return {"outcome": "right", "reason": "", "message": "m" * 5000, "cases": [], "seconds": 0.0}

    service = serve.Service(tmp_path, judge, 2, 1000)
    database, client = service.submissions._database, TestClient(serve.make_app(service, "token"))
    pages = database.execute("pragma page_count").fetchone()[0]
    database.execute(f"pragma max_page_count = {pages + 2}")
    taken, refused = [], []
    for salt in range(40):
        reply = client.post("/v1/evaluations", json={"task": "t" * 500, "program": "p", "salt": str(salt)},
                            headers={"Authorization": "Bearer token"})
        (taken if reply.status_code == 202 else refused).append((reply, str(salt)))
    assert taken and refused
    for reply, _ in refused:
        assert reply.status_code == 503 and "full" in reply.json()["detail"] and int(reply.headers["retry-after"]) > 0
    goes_on.set()
    while not {"0", "1"} <= set(judged):  # whose answers have no room
        time.sleep(0.01)
    time.sleep(0.1)
    assert service.submissions.counts().get("done", 0) <= 1
    database.execute("pragma max_page_count = 1000000")
    for reply, _ in taken:
        while service.submissions.look(reply.json()["id"])[0] != "done":
            time.sleep(0.01)
    assert sorted(judged) == sorted(salt for _, salt in taken)  # each once
    assert service.submissions.counts() == {"done": len(taken)}
    service.submissions.close()


def test_rate_forgets_the_oldest():
    rate = serve.Rate(2, most_clients=3)
    assert [rate.seconds_until_allowed("a") > 0 for _ in range(3)] == [False, False, True]
    for name in "bcd":
        rate.seconds_until_allowed(name)
    assert rate.seconds_until_allowed("a") == 0


def test_real_judge(tmp_path):
    from types import SimpleNamespace
    options = SimpleNamespace(jobs=1, deadline=120, memory=4 << 30, out=tmp_path, threads=1, bytes=1 << 16, flops=1e6,
                              timed_turns=3)
    judge = serve.pooled_judge(options, "s")
    body = serve.Submission(task=SCALE, program=RIGHT, timed=True).model_dump()
    reward = serve.reward_of(judge(body))
    assert reward["right"] and reward["speedup"] > 0
    body["program"] = RIGHT.replace("relu(", "(")
    reward = serve.reward_of(judge(body))
    assert (reward["outcome"], reward["reward"]) == ("wrong", 0.0) and reward["wrong"] and reward["pattern"]
