"""Asking models: an endpoint that fails in every way, conversations over turns, replays."""
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from conftest import RIGHT

from tegula_eval import cli
from tegula_eval.commands import exit_codes
from tegula_eval.model import conversation, endpoint
from tegula_eval.program import runner

pytest.importorskip("openai")
try:
    conversation.command_path()
    runner.library_path()
except FileNotFoundError as missing:
    pytest.skip(str(missing), allow_module_level=True)


def completion(text, **more):
    return {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}, **more}


class Server:
    """Gives `replies` in turn, then the last for ever: a completion's text, or (status, headers, body). `to_probe`: what
    it answers to the request that comes before a run."""

    def __init__(self, *replies, to_probe="yes"):
        self.replies, self.requests, self.probes, lock = list(replies), [], [], threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                is_probe = body["messages"][-1]["content"] == endpoint.PROBE
                with lock:
                    (outer.probes if is_probe else outer.requests).append(body)
                    reply = to_probe if is_probe else \
                        outer.replies.pop(0) if len(outer.replies) > 1 else outer.replies[0]
                reply = reply(body) if callable(reply) else reply
                status, headers, text = reply if isinstance(reply, tuple) else (200, {}, json.dumps(completion(reply)))
                if status is None:  # hangs
                    time.sleep(text)
                    return
                try:
                    self.send_response(status)
                    self.send_header("content-type", "application/json")
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(text.encode())
                except OSError:
                    pass  # who asked has gone

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


PLACE = {"task": "t", "sample": 3, "turn": 0}
MESSAGES = [{"role": "user", "content": "hello"}]


def ask(server, **options):
    return endpoint.Endpoint("m", server.url, timeout_s=options.pop("timeout_s", 120), **options).ask(PLACE, MESSAGES)


def test_an_answer():
    with Server("text") as server:
        answer = ask(server, temperature=0.5, seed=7, max_tokens=9)
        assert (answer.text, answer.tokens, answer.attempts) == ("text", {"prompt": 100, "completion": 10}, 1)
        sent = server.requests[0]
        assert (sent["model"], sent["messages"], sent["temperature"], sent["seed"], sent["max_tokens"]) == (
            "m", MESSAGES, 0.5, 10, 9)


@pytest.mark.parametrize("failure", [(429, {"retry-after": "0.1"}, "{}"), (503, {"retry-after": "0.1"}, "busy"),
                                     (500, {"retry-after": "0.1"}, "<html>")])
def test_what_may_pass_is_asked_again(failure):
    with Server(failure, failure, "text") as server:
        answer = ask(server)
        assert answer.text == "text" and answer.attempts == 3


@pytest.mark.parametrize("reply, reason", [
    ((401, {}, '{"error": {"message": "no key"}}'), "refused"), ((404, {}, ""), "refused"),
    ((200, {}, "<html>"), "garbage"), ((200, {}, "{}"), "garbage"), ((200, {}, '{"choices": []}'), "garbage"),
    ((200, {}, json.dumps(completion(None))), "garbage"),
    ((429, {"retry-after": "0.1"}, "{}"), "limit"), ((None, {}, 3), "timeout"),
])
def test_no_answer(reply, reason):
    with Server(reply) as server, pytest.raises(endpoint.Unanswered) as caught:
        ask(server, **({"retries": 0, "timeout_s": 0.5} if reason == "timeout" else {"retries": 2}))
    assert caught.value.reason == reason


def test_nobody_there():
    with pytest.raises(endpoint.Unanswered) as caught:
        endpoint.Endpoint("m", "http://127.0.0.1:9/v1", retries=0).ask(PLACE, MESSAGES)
    assert caught.value.reason == "connection"


def test_options_for_models_that_think():
    with Server((200, {}, json.dumps(completion("text", usage={
            "prompt_tokens": 3, "completion_tokens": 9, "total_tokens": 12, "completion_tokens_details": {"reasoning_tokens": 7}})))) as server:
        answer = ask(server, max_completion_tokens=99, reasoning_effort="high", extra_body={"top_k": 20})
        sent = server.requests[0]
        assert (sent["max_completion_tokens"], sent["reasoning_effort"], sent["top_k"]) == (99, "high", 20)
        assert "max_tokens" not in sent and answer.tokens == {"prompt": 3, "completion": 9, "reasoning": 7}


def test_cut_off_while_it_thinks():
    """It answered: no program, and not a failure of the endpoint."""
    reply = completion(None)
    reply["choices"][0]["finish_reason"] = "length"
    with Server((200, {}, json.dumps(reply))) as server:
        answer = ask(server)
        assert (answer.text, answer.finish) == ("", "length")


@pytest.mark.parametrize("reply, what", [
    ((401, {}, '{"error": {"message": "no"}}'), "the key in OPENAI_API_KEY is not taken"),
    ((404, {}, '{"error": {"message": "no"}}'), "no model 'm' there"),
    ((400, {}, '{"error": {"message": "reasoning_effort"}}'), "an option is wrong"),
    ((200, {}, "<html>"), "--base-url mostly ends in /v1"),
    ((429, {"retry-after": "0.1"}, "{}"), "takes no more requests now"),
])
def test_a_probe_before_the_run(root, tmp_path, capsys, reply, what):
    """Nothing is asked, nothing is recorded, and what is wrong is said."""
    with Server(f"```\n{RIGHT}```", to_probe=reply) as server:
        assert cli.main(command(root, tmp_path / "out", "--model=m", f"--base-url={server.url}")) == exit_codes.WRONG_CALL
        assert not server.requests and len(server.probes) == (2 if reply[0] == 429 else 1)
        said = capsys.readouterr().err
        assert what in said and server.url in said and not records(tmp_path / "out")


def test_no_probe_and_nobody_there(root, tmp_path, capsys):
    url = "http://127.0.0.1:9/v1"
    assert cli.main(command(root, tmp_path / "out", "--model=m", f"--base-url={url}", "--retries=0")) == exit_codes.WRONG_CALL
    assert "the endpoint does not answer" in capsys.readouterr().err
    assert cli.main(command(root, tmp_path / "out", "--model=m", f"--base-url={url}", "--retries=0", "--no-probe")) == 1
    said = capsys.readouterr().out
    assert [one["outcome"] for one in records(tmp_path / "out")] == ["unanswered"]
    assert "pass@k: nothing was judged" in said and "1 not judged for reasons that are not theirs" in said


def test_budget():
    with Server("text") as server:
        source = endpoint.Endpoint("m", server.url, budget=endpoint.Budget(150))
        source.ask(PLACE, MESSAGES)
        source.ask(PLACE, MESSAGES)
        with pytest.raises(endpoint.Unanswered) as caught:
            source.ask(PLACE, MESSAGES)
        assert caught.value.reason == "budget" and len(server.requests) == 2


def command(root, out, *more):
    return ["kernelbench", f"--root={root}", f"--out={out}", "--plain", "--bytes=64K", "--flops=1e6", "--level=1", *more]


def records(out):
    return [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]


WRONG = RIGHT.replace("max(", "min(") if "max(" in RIGHT else RIGHT.replace("relu(", "(")


def test_turns_until_it_is_right(root, tmp_path, capsys):
    """No block, a program that is refused, a wrong one, a right one; then nothing more is asked."""
    refused = RIGHT.replace("kernel ", "kernel ", 1).replace("->", "=>", 1)
    answers = ["I would rather not.", f"```\n{refused}```", f"```\n{WRONG}```", f"```\n{RIGHT}```"]
    with Server(*answers) as server:
        out = tmp_path / "out"
        arguments = command(root, out, "--model=m", f"--base-url={server.url}", "--turns=6")
        assert cli.main(arguments) == 0
        said = [body["messages"][-1]["content"] for body in server.requests]
        assert [one["outcome"] for one in records(out)] == ["no-program", "refused", "wrong", "right"]
        assert "# Tegula on one page" in said[0] and "class Model" in said[0]
        assert "no code block" in said[1]
        assert "This program is refused" in said[2] and "E0101" in said[2] and "Right:" in said[2]
        assert "its result is wrong" in said[3] and "expected" in said[3] and "Wrong are:" in said[3]
        assert len(server.requests[3]["messages"]) == 7  # the whole conversation
        assert "right by turn: 0.0 %, 0.0 %, 0.0 %, 100.0 %" in capsys.readouterr().out
        # Once more: everything is known.
        assert cli.main(arguments) == 0 and len(server.requests) == 4 and len(records(out)) == 4
    # The run's own record answers in place of the model.
    again = tmp_path / "again"
    assert cli.main(command(root, again, f"--replay={out / 'results.jsonl'}", "--turns=6")) == 0
    assert [one["outcome"] for one in records(again)] == ["no-program", "refused", "wrong", "right"]


def test_samples(root, tmp_path):
    """Half of the samples are right: pass@1 is a half, pass@4 is 1."""
    with Server(lambda body: f"```\n{RIGHT if body['seed'] % 2 else WRONG}```") as server:
        out = tmp_path / "out"
        assert cli.main(command(root, out, "--model=m", f"--base-url={server.url}", "--samples=4", "--seed=0",
                                "--jobs=2")) == 1
        told = json.loads((out / "summary.json").read_text())
        assert told["model"]["pass_at"] == {"1": 0.5, "4": 1.0}
        assert told["model"]["tokens"] == {"prompt": 400, "completion": 40}


def test_unanswered_does_not_stop_the_run(root, tmp_path):
    answers = tmp_path / "answers.jsonl"
    answers.write_text(json.dumps({"task": "level1/3_Scale", "answer": f"```\n{RIGHT}```"}) + "\n")
    (root / "level1" / "9_other.py").write_text((root / "level1" / "3_Scale.py").read_text())
    assert cli.main(command(root, tmp_path / "out", f"--replay={answers}")) == 1
    assert {one["task"]: (one["outcome"], one["reason"]) for one in records(tmp_path / "out")} == {
        "level1/3_Scale": ("right", ""), "level1/9_other": ("unanswered", "replay")}


def test_after_it_is_right_its_speed_is_told(root, tmp_path):
    answers = tmp_path / "answers.jsonl"
    answers.write_text("".join(json.dumps({"task": "level1/3_Scale", "turn": turn, "answer": f"```\n{RIGHT}```"}) + "\n"
                               for turn in range(2)))
    out = tmp_path / "out"
    assert cli.main(command(root, out, f"--replay={answers}", "--turns=2", "--time", "--timed-turns=3")) == 0
    said = records(out)[1]["asked"]["message"]
    assert said.startswith("The program is right. It takes") and "eager mode" in said and "Moving its inputs" in said


@pytest.mark.parametrize("text", ["[]\n", "{\n", '{"answer": 1}\n', "\xff"])
def test_damaged_record(root, tmp_path, text):
    (tmp_path / "answers.jsonl").write_bytes(text.encode("latin-1"))
    assert cli.main(command(root, tmp_path / "out", f"--replay={tmp_path / 'answers.jsonl'}")) == exit_codes.WRONG_CALL


def test_a_right_program_far_from_its_bound_is_told_what_would_mend_it():
    program = "kernel f(a: f32[M, K], b: f32[K, N], s: f32[K]) -> (y: f32[M, N]) {\n" \
              "  y[i, j] = sum(a[i, k] * b[k, j] for k if s[k] > 0)\n}\n"
    timing = {"program_s": 1e-2, "compiled_for": {"sizes": {"M": 4096, "N": 4096, "K": 4096}, "settings": {},
                                                  "device": "NVIDIA H200", "target": "sm_90a"}}
    said = conversation.remarks(program, timing)
    assert len(said) == 1 and said[0].startswith("2:3: launch 'y' is expected to take"), said
    assert "put the condition into a factor" in said[0]
    message = conversation.next_message({"outcome": "right", "timing": timing}, program)
    assert said[0] in message and message.index(said[0]) < message.index("Make it faster")


@pytest.mark.parametrize("known", [None, {"device": "NVIDIA B300", "target": "sm_103a", "sizes": {"N": 4}, "settings": {}}])
def test_nothing_is_said_of_launches_where_no_model_knows_them(known):
    timing = {"program_s": 1e-2, "compiled_for": known}
    assert conversation.remarks("kernel f(x: f32[N]) -> (y: f32[N]) {\n  y[i] = x[i]\n}\n", timing) == []
