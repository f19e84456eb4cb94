"""A process that judges and times programs on one device, one after another.

Reads one line, {"jobs": [...], "options": {...}}, compiles all of their programs on all cores, then takes one job
after the other. Writes lines: {"ready"}, {"compiling": key}, {"compiled": key}, {"stage": name, "key": key},
{"record": {...}, "key": key}, {"end"}. What loads a context, its libraries and their kernels is spent once for all
programs; a program that breaks the context ends the process, and device.py begins another for the rest.
"""
from __future__ import annotations

import concurrent.futures
import gc
import json
import os
import sys
import threading
import time
import traceback

STACK_BYTES = 16 << 20  # of a thread that compiles


def main() -> None:
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what anything prints must not mix with the lines
    lock = threading.Lock()

    def tell(**message) -> None:
        with lock:
            lines.write(json.dumps(message) + "\n")
            lines.flush()

    from ..confine import child
    from ..program import provenance
    child.die_with_parent()
    import torch
    message = json.loads(sys.stdin.readline())
    options = message["options"]
    end = time.monotonic() + options["seconds"]
    torch.set_num_threads(options["threads"])
    _warm(options["device"])
    tell(ready=True, versions=provenance.versions(torch.device(options["device"]).type))
    ready = _compile_ahead(message["jobs"], options, tell)
    gc.freeze()  # what is there now stays: not looked through again after each program
    for job in message["jobs"]:
        if time.monotonic() > end:
            break
        record, is_broken = _one(job, options, ready.pop(job["key"], None), tell)
        tell(record=record, key=job["key"])
        if is_broken:
            return
    tell(end=True)


def _warm(device: str) -> None:
    """Loads what every program needs: the context, the libraries of products and convolutions, the roofline."""
    import torch
    from torch.nn import functional

    from ..rule import variants
    from ..timing import roofline
    variants.warm()
    kind = torch.device(device).type
    functional.conv2d(torch.ones(1, 8, 16, 16, device=device), torch.ones(8, 8, 3, 3, device=device))
    torch.ones(64, 64, device=device, dtype=torch.float64) @ torch.ones(64, 64, device=device, dtype=torch.float64)
    roofline.rates(kind)


def _compile_ahead(jobs: list[dict], options: dict, tell) -> dict[str, dict]:
    """For each job what is ready: its program, and its kernel or the error. Neither, where the module does not run
    on shapes alone: that job compiles when its turn comes."""
    import torch

    from ..judge import own_sizes
    from ..program import runner
    from ..program.binding import BindingError, bind
    target = torch.device(options["device"]).type
    runner._context(options["threads"], torch.cuda.current_device() if target == "cuda" else 0)
    ready: dict[str, dict] = {}

    def compile_one(key: str, program: runner.Program, binding) -> None:
        tell(compiling=key)
        try:
            ready[key].update(kernel=own_sizes.compile_for(program, binding, target, options),
                              kernel_key=own_sizes.kernel_key(binding))
        except runner.Refused as error:
            ready[key]["error"] = error
        tell(compiled=key)

    stack = threading.stack_size(STACK_BYTES)
    with concurrent.futures.ThreadPoolExecutor(max(1, options["ahead"])) as threads:
        for job in jobs:
            one = ready[job["key"]] = {}
            tell(stage="parse", key=job["key"])
            try:
                one["program"] = runner.Program(job["program"], job["program_name"])
                one["program"].check()
                binding = bind(one["program"].parameters, own_sizes.make_case(job["task"], 0, "meta"))
            except (BindingError, runner.Refused) as error:
                one["error"] = error
                continue
            except Exception:  # whatever a module raises without values: it is made on the device then
                continue
            if options["ahead"] > 1:
                threads.submit(compile_one, job["key"], one["program"], binding)
            else:  # so that whatever ends the process has one cause
                compile_one(job["key"], one["program"], binding)
    threading.stack_size(stack)
    return ready


def _one(job: dict, options: dict, ready: dict | None, tell) -> tuple[dict, bool]:
    """The record, and whether the device is unusable afterwards."""
    import torch

    from ..judge.own_sizes import OwnSize, free
    started = time.monotonic()
    work = OwnSize(job, options, ready, lambda name: tell(stage=name, key=job["key"]))
    try:
        record = work.judge_and_time()
    except Exception as error:
        record = {**work.record, "outcome": "failed", "reason": getattr(work, "at", "start"),
                  "message": f"{type(error).__name__}: {str(error)[:500]}", "trace": traceback.format_exc()[-3000:]}
    record["seconds"] = round(time.monotonic() - started, 3)
    del work
    try:
        free()
        if torch.device(options["device"]).type == "cuda":
            torch.cuda.synchronize()
    except Exception as error:
        return {**record, "outcome": "crashed", "reason": record["reason"] or "end",
                "message": record["message"] or str(error)[:500]}, True
    return record, False


if __name__ == "__main__":
    main()
