"""A process that has torch imported and judges programs, each in a child of its own.

Reads requests as JSON lines, {"request": ..., "deadline_s": ..., "memory_bytes": ...}, and answers each with a
line. Nothing of a task or program runs in this process.
"""
from __future__ import annotations

import json
import os
import sys


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what anything prints must not mix with the answers
    from . import isolation
    isolation.die_with_parent()
    isolation.keep_memory()
    from . import candidates, export, provenance, variants
    from .auditing import audit
    from .evaluate import evaluate
    functions = {"evaluate": evaluate, "export": export.export, "candidate": candidates.evaluate, "audit": audit}
    variants.warm()
    provenance.versions("cpu")  # the library is loaded and hashed once for all children
    answers.write('{"ready": true}\n')
    answers.flush()
    for line in sys.stdin:
        message = json.loads(line)
        what = message["request"].get("do", "evaluate")
        if what == "candidate":
            candidates.starter()  # before the fork, so that it serves the next one too
        outcome = isolation.run(functions[what], message["request"], message["deadline_s"], message["memory_bytes"],
                                None if what == "candidate" else isolation.MAX_OUTPUT_BYTES)
        if what == "candidate":
            candidates.starter().end()  # where the child could not: at a deadline
        answers.write(json.dumps(outcome) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
