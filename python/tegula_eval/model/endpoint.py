"""Who answers: an endpoint that speaks OpenAI's protocol, or a record of answers."""
from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path


class Unanswered(Exception):
    """There is no answer; `reason` is `timeout`, `limit`, `refused`, `garbage`, `connection`, `budget` or
    `replay`."""

    def __init__(self, reason: str, message: str):
        self.reason = reason
        super().__init__(message)


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
    """`ask` may be called from many threads. What can pass (429, 5xx, a lost connection, a timeout) is asked again
    up to `retries` times, after what the server says or twice as long each time."""

    def __init__(self, model: str, base_url: str | None, key: str | None = None, *, timeout_s: float = 600,
                 retries: int = 5, budget: Budget | None = None, temperature: float | None = None,
                 max_tokens: int | None = None, seed: int | None = None):
        import openai
        self._errors = openai
        self._client = openai.OpenAI(base_url=base_url, api_key=key or "none", max_retries=0, timeout=timeout_s)
        self.model, self.timeout_s, self.retries = model, timeout_s, retries
        self.budget = budget or Budget(None)
        self.seed = seed
        self.options = {name: value for name, value in (("temperature", temperature), ("max_tokens", max_tokens))
                        if value is not None}

    def settings(self) -> dict:
        """What an answer depends on, besides the messages."""
        return {"model": self.model, "seed": self.seed, **self.options}

    def ask(self, place: dict, messages: list[dict]) -> Answer:
        started, wait = time.monotonic(), 1.0
        for attempt in range(1, self.retries + 2):
            self.budget.check()
            try:
                return self._ask_once(place, messages, started, attempt)
            except Unanswered as error:
                passing = error.reason in ("timeout", "limit", "connection")
                if not passing or attempt > self.retries:
                    raise
                said = getattr(error, "retry_after", None)
                time.sleep(min(said if said is not None else wait, 120))
                wait = min(2 * wait, 60)
        raise AssertionError("the last attempt returns or raises")

    def _ask_once(self, place: dict, messages: list[dict], started: float, attempt: int) -> Answer:
        openai = self._errors
        seed = {} if self.seed is None else {"seed": self.seed + place["sample"]}
        try:
            reply = self._client.chat.completions.create(model=self.model, messages=messages, **self.options, **seed)
            choice = reply.choices[0]
            text = choice.message.content
        except openai.APITimeoutError as error:
            raise Unanswered("timeout", f"no answer within {self.timeout_s:g} s") from error
        except openai.APIConnectionError as error:
            raise Unanswered("connection", f"{error}: {error.__cause__}") from error
        except openai.APIStatusError as error:
            raise _status_error(error) from error
        except (openai.APIError, json.JSONDecodeError, AttributeError, IndexError, TypeError, ValueError) as error:
            raise Unanswered("garbage", f"the reply is no chat completion: {type(error).__name__}: {error}"[:500]) \
                from error
        if not isinstance(text, str):
            raise Unanswered("garbage", "the reply's message has no text")
        usage = getattr(reply, "usage", None)
        tokens = {"prompt": getattr(usage, "prompt_tokens", None) or 0,
                  "completion": getattr(usage, "completion_tokens", None) or 0}
        # A server that does not count: about four characters a token.
        self.budget.spend(sum(tokens.values()) or (sum(len(one["content"]) for one in messages) + len(text)) // 4)
        return Answer(text, choice.finish_reason or "stop", tokens, round(time.monotonic() - started, 3), attempt)


def _status_error(error) -> Unanswered:
    code = error.status_code
    told = Unanswered("limit" if code == 429 else "connection" if code >= 500 or code in (408, 409) else "refused",
                      f"HTTP {code}: {error.message}"[:500])
    try:
        told.retry_after = max(0.0, float(error.response.headers.get("retry-after", "")))
    except ValueError:
        pass
    return told


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
