"""Submissions of the service and of `tegula mcp`, judged as `tegula-eval kernelbench` does. It needs neither's libraries."""
from __future__ import annotations

import hashlib
import hmac
import json
from typing import Callable

from ..records.outcomes import outcome_record
from ..workers import pool


def pooled_judge(options, secret: str, workers: pool.Pool | None = None) -> Callable[..., dict]:
    """`judge(submission, job)`, in the workers of a pool. Each submission's seeds come from a secret of its own: its task's
    process knows that one and no other."""
    workers = workers or pool.Pool(options.jobs, options.deadline, options.memory)
    cache = options.out / "variants"
    cache.mkdir(parents=True, exist_ok=True)

    def judge(submission: dict, job: pool.Job | None = None) -> dict:
        own_secret = hmac.new(secret.encode(), json.dumps(submission, sort_keys=True).encode(), hashlib.sha256).hexdigest()
        request = {name: submission[name] for name in ("task", "program", "target", "seeds", "own")}
        request.update(program_name="program.tgl", threads=options.threads, bytes=options.bytes,
                       flops=int(options.flops), secret=own_secret, is_foreign=True, cache=str(cache.resolve()),
                       time={"turns": options.timed_turns, "compile": False} if submission["timed"] else None,
                       **({"certify": True} if submission.get("certify") else {}))
        outcome = workers.judge(request, job=job)
        return {**outcome_record(outcome), "seconds": outcome["seconds"]}

    return judge
