"""Who answers: an endpoint that speaks OpenAI's protocol, or a record of answers."""
from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path


PROBE = "Answer with the word yes."
PROBE_S = 120  # a model that thinks may take as long for so little


class Unanswered(Exception):
    """There is no answer; `reason` is `timeout`, `limit`, `refused`, `garbage`, `connection`, `budget` or
    `replay`."""

    def __init__(self, reason: str, message: str, status: int | None = None):
        self.reason, self.status = reason, status  # status: that of HTTP, where there was one
        super().__init__(message)


class Unreachable(RuntimeError):
    """No request of a run would be answered."""


@dataclass(frozen=True)
class Answer:
    text: str
    finish: str = "stop"           # `length`: cut off
    tokens: dict = field(default_factory=dict)  # prompt, completion
    seconds: float = 0.0
    attempts: int = 1


class Budget:
    """Tokens that may be spent, over all threads. A request is begun while there are any left, so that a run ends
    at most the requests under way beyond it."""

    def __init__(self, tokens: int | None):
        self.left, self._lock = tokens, threading.Lock()

    def check(self) -> None:
        with self._lock:
            if self.left is not None and self.left <= 0:
                raise Unanswered("budget", "the run's budget of tokens is spent")

    def spend(self, tokens: int) -> None:
        with self._lock:
            if self.left is not None:
                self.left -= tokens


class Endpoint:
    """`ask` may be called from many threads. What can pass (429, 5xx, a lost connection, a timeout) is asked again up to
    `retries` times by the SDK, which waits for as long as the server says, or longer each time."""

    def __init__(self, model: str, base_url: str | None, key: str | None = None, *, timeout_s: float = 600,
                 retries: int = 5, budget: Budget | None = None, temperature: float | None = None,
                 max_tokens: int | None = None, seed: int | None = None, max_completion_tokens: int | None = None,
                 reasoning_effort: str | None = None, extra_body: dict | None = None):
        import openai
        self._errors = openai
        self._client = openai.OpenAI(base_url=base_url, api_key=key or "none", max_retries=retries, timeout=timeout_s)
        self.model, self.timeout_s, self.retries = model, timeout_s, retries
        self.budget = budget or Budget(None)
        self.seed = seed
        self.options = {name: value for name, value in (
            ("temperature", temperature), ("max_tokens", max_tokens), ("max_completion_tokens", max_completion_tokens),
            ("reasoning_effort", reasoning_effort), ("extra_body", extra_body)) if value is not None}

    def settings(self) -> dict:
        """What an answer depends on, besides the messages."""
        return {"model": self.model, "seed": self.seed, **self.options}

    def probe(self) -> None:
        """A short request with the run's own options. Raises Unreachable, whose text says what to look at, where no
        request can be answered; what is answered badly is for the run to tell."""
        try:
            short = self._client.with_options(max_retries=min(self.retries, 1), timeout=min(self.timeout_s, PROBE_S))
            self._create(short, [{"role": "user", "content": PROBE}], {} if self.seed is None else {"seed": self.seed})
        except Unanswered as error:
            look = {401: "the key in OPENAI_API_KEY is not taken", 403: "the key in OPENAI_API_KEY may not do this",
                    404: f"there is no such address, or no model '{self.model}' there",
                    400: "the request is not taken: a model's name or an option is wrong",
                    422: "the request is not taken: a model's name or an option is wrong"}.get(error.status)
            if look is None and error.reason in ("connection", "timeout"):
                look = "the endpoint does not answer"
            if look is None and error.reason == "limit":
                look = "the endpoint takes no more requests now"
            if look is None and error.reason == "garbage":
                look = "what answers speaks another protocol: --base-url mostly ends in /v1"
            raise Unreachable(f"{self._client.base_url}: {look or 'the request is refused'}: {error}; nothing was "
                              "asked (--no-probe begins all the same)") from error

    def ask(self, place: dict, messages: list[dict]) -> Answer:
        self.budget.check()
        started = time.monotonic()
        seed = {} if self.seed is None else {"seed": self.seed + place["sample"]}
        reply, attempts = self._create(self._client, messages, seed)
        choice = reply.choices[0]
        text = choice.message.content
        # What a model thought before it was cut off is no answer, but it did answer: the program is missing.
        if text is None and choice.finish_reason == "length":
            text = ""
        if not isinstance(text, str):
            raise Unanswered("garbage", "the reply's message has no text")
        usage = getattr(reply, "usage", None)
        tokens = {"prompt": getattr(usage, "prompt_tokens", None) or 0,
                  "completion": getattr(usage, "completion_tokens", None) or 0}
        thought = getattr(getattr(usage, "completion_tokens_details", None), "reasoning_tokens", None)
        # A server that does not count: about four characters a token.
        self.budget.spend(sum(tokens.values()) or (sum(len(one["content"]) for one in messages) + len(text)) // 4)
        if thought:
            tokens["reasoning"] = thought  # which are among those of the answer
        return Answer(text, choice.finish_reason or "stop", tokens, round(time.monotonic() - started, 3), attempts)

    def _create(self, client, messages: list[dict], seed: dict) -> tuple:
        """The reply, with a choice and a message, and how often was asked. Raises Unanswered."""
        openai = self._errors
        try:
            raw = client.chat.completions.with_raw_response.create(
                model=self.model, messages=messages, **self.options, **seed)
            reply = raw.parse()
            reply.choices[0].message.content
            return reply, 1 + getattr(raw, "retries_taken", 0)
        except openai.APITimeoutError as error:
            raise Unanswered("timeout", f"no answer within {self.timeout_s:g} s") from error
        except openai.APIConnectionError as error:
            raise Unanswered("connection", f"{error}: {error.__cause__}") from error
        except openai.APIStatusError as error:
            raise _status_error(error) from error
        except (openai.APIError, json.JSONDecodeError, AttributeError, IndexError, TypeError, ValueError) as error:
            raise Unanswered("garbage", f"the reply is no chat completion: {type(error).__name__}: {error}"[:500]) \
                from error


def _status_error(error) -> Unanswered:
    code = error.status_code
    return Unanswered("limit" if code == 429 else "connection" if code >= 500 or code in (408, 409) else "refused",
                      f"HTTP {code}: {error.message}"[:500], code)


class Replay:
    """Answers out of a file of JSON Lines: `task`, `sample` and `turn` (both 0 where absent) and `answer`; a run's
    own `results.jsonl` is one. Of several for one place the last counts."""

    def __init__(self, path: Path):
        self.answers: dict[tuple, Answer] = {}
        try:
            lines = path.read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise RuntimeError(f"{path}: {error}") from error
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
                asked = record.get("asked") or record
                if "answer" in asked:
                    place = (record["task"], asked.get("sample", 0), asked.get("turn", 0))
                    self.answers[place] = Answer(str(asked["answer"]), asked.get("finish", "stop"))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise RuntimeError(f"{path}:{number}: no record of an answer: {error!r}") from error

    def settings(self) -> dict:
        return {"model": "replay"}

    def ask(self, place: dict, messages: list[dict]) -> Answer:
        key = (place["task"], place["sample"], place["turn"])
        if key not in self.answers:
            raise Unanswered("replay", "the record has no answer for this task, sample and turn")
        return self.answers[key]
