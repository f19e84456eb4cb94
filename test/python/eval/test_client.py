"""Batches, the client that training runs use, and what the service tells of itself."""
import json
import re
import threading
import time

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
from test_serve import Client as Plain  # noqa: E402
from test_serve import Stub, hold  # noqa: E402

from tegula_eval import client as clients  # noqa: E402
from tegula_eval.client import Client, ServiceError  # noqa: E402
from tegula_eval.program import runner  # noqa: E402

try:
    runner.library_path()
except FileNotFoundError as missing:
    pytest.skip(str(missing), allow_module_level=True)


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    with Stub(tmp_path_factory.mktemp("client") / "queue") as running:
        yield running


def asked(*salts, program="p"):
    return [{"task": "t", "program": program, "salt": str(salt)} for salt in salts]


def test_batches(stub):
    plain = Plain(stub.port)
    before = plain("GET", "/v1/health")[2]["submissions"]["done"]
    status, _, told = plain("POST", "/v1/batches", {"submissions": asked("a", "b", "a")})
    ids = [one["id"] for one in told["evaluations"]]
    assert status == 202 and ids[0] == ids[2] != ids[1]
    assert plain.submit("b")[2]["id"] == ids[1]  # the same submission, however it was sent
    status, _, told = plain("GET", "/v1/evaluations?wait=30&" + "&".join(f"id={one}" for one in ids))
    assert status == 200 and [one["id"] for one in told["evaluations"]] == ids
    assert [one["reward"]["message"].split()[0] for one in told["evaluations"]] == ["a", "b", "a"]
    # One that does not follow the schema: none is taken.
    for wrong in ([], asked("c") + [{"task": "t"}], asked("d") * 257):
        assert plain("POST", "/v1/batches", {"submissions": wrong})[0] == 422
    assert plain("GET", f"/v1/evaluations?id={ids[0]}&id=none")[0] == 404
    assert plain("GET", "/v1/health")[2]["submissions"] == {"waiting": 0, "running": 0, "done": before + 2}


def test_batches_are_taken_whole(tmp_path):
    with Stub(tmp_path / "queue", 5, 20) as stub:
        plain = Plain(stub.port)
        for salt in (1, 2):
            hold(plain, salt)
        assert plain("POST", "/v1/batches", {"submissions": asked(*range(10, 16))})[0] == 503
        assert plain("POST", "/v1/batches", {"submissions": asked(*range(10, 14))})[0] == 202
        assert plain("POST", "/v1/batches", {"submissions": asked(*range(10, 16))})[0] == 503
        assert plain("POST", "/v1/batches", {"submissions": asked(*range(10, 14))})[0] == 429  # 2 + 6 + 4 + 6 + 4 > 20
        assert plain("GET", "/v1/health")[2]["submissions"] == {"waiting": 4, "running": 2, "done": 0}


def test_client(stub):
    client = Client(f"http://127.0.0.1:{stub.port}", "token")
    reward = client.evaluate("t", "p", salt="client")
    assert reward["right"] and reward["message"].startswith("client ")
    many = client.evaluate_all(asked(*(f"many-{number}" for number in range(600))))
    assert [one["message"].split()[0] for one in many] == [f"many-{number}" for number in range(600)]
    assert client.rewards([client.submit("t", "p", salt="client")]) == [reward]
    assert client.look(client.submit("t", "p", salt="client")) == reward
    assert client.health()["workers"] == 2 and Client(f"127.0.0.1:{stub.port}/v1", "token").health() == client.health()


def test_client_hears_why(stub):
    client = Client(f"127.0.0.1:{stub.port}", "token")
    for function, status in ((lambda: client.submit("", "p"), 422), (lambda: client.submit("t", "p" * (3 << 20)), 413),
                             (lambda: client.look("none"), 404), (lambda: Client(f"127.0.0.1:{stub.port}", "guess").look("x"), 401),
                             (lambda: client.submit("t", "\ud800"), 422)):
        with pytest.raises(ServiceError) as caught:
            function()
        assert caught.value.status == status and caught.value.detail
    held = client.submit("t", "hold", salt="held by the client")
    with pytest.raises(TimeoutError):
        client.rewards([held], timeout_s=0.3)
    started = time.monotonic()
    with pytest.raises(ServiceError, match="cannot be reached"):
        Client("127.0.0.1:1", "token", patience_s=0.5).health()
    assert time.monotonic() - started < 10
    with pytest.raises(ValueError):
        Client("ftp://127.0.0.1")


def test_client_waits_for_the_service(tmp_path):
    """For room, for its rate, and for the next service where this one is killed: everything is answered once."""
    with Stub(tmp_path / "queue", 30, 1200) as stub:
        client = Client(f"127.0.0.1:{stub.port}", "token", patience_s=120)
        number, port, rewards = [0], stub.port, []

        class Moving(clients.Client):
            """Finds the service where it is now."""

            def _once(self, *question):
                import http.client
                if getattr(self._threads, "port", None) != number[0]:
                    self._threads.port, self._threads.connection = number[0], http.client.HTTPConnection("127.0.0.1", number[0], timeout=60)
                return super()._once(*question)

        number[0] = port
        moving = Moving(f"127.0.0.1:{port}", "token", patience_s=120)

        def ask(first):
            ids = [moving.submit("t", "p", salt=str(one)) for one in range(first, 200, 4)]
            rewards.extend(zip(range(first, 200, 4), moving.rewards(ids)))

        threads = [threading.Thread(target=ask, args=(one,)) for one in range(4)]
        for thread in threads:
            thread.start()
        while client.health()["submissions"]["done"] < 40:
            time.sleep(0.01)
        stub.process.kill()
        stub.process.wait()
        with Stub(tmp_path / "queue", 30, 1200) as again:
            number[0] = again.port
            for thread in threads:
                thread.join()
            assert sorted(one for one, _ in rewards) == list(range(200))
            assert all(reward["message"].split()[0] == str(one) for one, reward in rewards)
            assert Client(f"127.0.0.1:{again.port}", "token").health()["submissions"]["done"] == 200


def test_description(stub):
    plain = Plain(stub.port, "none")
    status, _, told = plain("GET", "/v1/openapi.json")
    assert status == 200 and told["openapi"].startswith("3.")
    paths = {(method, path) for path, methods in told["paths"].items() for method in methods}
    assert {("post", "/v1/evaluations"), ("post", "/v1/batches"), ("get", "/v1/evaluations"), ("get", "/v1/evaluations/{key}"),
            ("get", "/v1/health"), ("get", "/v1/schema"), ("get", "/metrics")} == paths
    for method, path in paths:
        described = told["paths"][path][method]
        needs = Plain(stub.port, "none")(method.upper(), path.format(key="x"), None if method == "get" else {})[0] == 401
        assert needs == ("security" in described) == ("401" in described["responses"])
    names = told["components"]["schemas"]
    assert {"Submission", "Batch", "Reward", "Evaluation"} <= set(names) and "HTTPBearer" in told["components"]["securitySchemes"]
    assert {"413", "422", "429", "503"} <= set(told["paths"]["/v1/batches"]["post"]["responses"])
    assert plain("GET", "/docs")[0] == 200


SAMPLE = re.compile(r'([a-z_]+)(\{[a-z]+="(?:[^"\\\n]|\\.)*"\})? (\S+)')


def numbers(stub):
    status, headers, text = Plain(stub.port, "none")("GET", "/metrics")
    assert status == 200 and headers["content-type"].startswith("text/plain; version=0.0.4")
    known, found = set(), {}
    for line in text.splitlines():
        if line.startswith("# "):
            known.add(line.split()[2])
        else:
            name, label, value = SAMPLE.fullmatch(line).groups()
            assert name in known
            found[name + (label or "")] = float(value)
    return found


def test_metrics(stub):
    client, before = Client(f"127.0.0.1:{stub.port}", "token"), numbers(stub)
    client.evaluate_all(asked("counted", "counted too"))
    client.evaluate("t", "raise", salt="counted")
    for body in ("{", json.dumps({"task": "t"})):
        Plain(stub.port)("POST", "/v1/evaluations", body)
    after = numbers(stub)

    def grown(name):
        return after.get(name, 0) - before.get(name, 0)

    assert grown('tegula_eval_submissions{state="done"}') == 3
    assert grown('tegula_eval_answers_total{outcome="right"}') == 2 and grown('tegula_eval_answers_total{outcome="failed"}') == 1
    assert grown('tegula_eval_refused_total{reason="malformed"}') == 2 and grown('tegula_eval_http_responses_total{code="422"}') == 2
    assert grown("tegula_eval_judging_seconds_total") > 0 and after["process_resident_memory_bytes"] > 1 << 20
    assert after["tegula_eval_connections"] >= 1 and after['tegula_eval_workers{state="all"}'] == 2
