#!/usr/bin/env python3
"""Holds programs against KernelBench's modules by `tegula prove`, and prints a table of verdicts and times.

    bench/kernelbench/prove.py --root=KernelBench [--level=1,2,3] [--tasks=19,2/33] [--programs=FOLDER] [--out=proofs]

One process has torch and takes all modules apart; each task has a child of its own. Times are the processor's, of the child and
of the prover, from the task's text to the verdict, but for the search for small sizes, which is done once and kept in OUT.
OUT/results.jsonl has the certificates, and the wall clock's times. Exit code 4 where a program is called different, 5 where one is undecided.
"""
import argparse
import collections
import json
import os
import pathlib
import resource
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def prove(request, stage):
    """In a child."""
    import torch
    from tegula_eval.judge.evaluate import VariantCache
    from tegula_eval.proofs.certify import SMALL_BYTES, SMALL_FLOPS, certify, small_variants
    from tegula_eval.rule.variants import from_json, to_json

    torch.set_num_threads(1)
    stage("variants")
    started = time.monotonic()
    cache = VariantCache(request["cache"], {**request, "bytes": SMALL_BYTES, "flops": SMALL_FLOPS})
    if not cache.read():
        cache.write(to_json(small_variants(request["task"])))
    variants = from_json(cache.read())
    searched, used = time.monotonic(), processor_s()
    stage("prove")
    told = certify(request["program"], lambda: variants, variants[0], request["deadline"])
    return {**told, "seconds": round(time.monotonic() - searched, 3), "processor_s": round(processor_s() - used, 3),
            "search_seconds": round(searched - started, 3)}


def processor_s():
    """Of this process and of those that it has waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--root", type=pathlib.Path, required=True)
    options.add_argument("--programs", type=pathlib.Path, default=ROOT / "bench/kernelbench/programs")
    options.add_argument("--level", type=lambda text: [int(one) for one in text.split(",")], default=[1, 2, 3])
    options.add_argument("--tasks", type=lambda text: text.split(","))
    options.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev")
    options.add_argument("--deadline", type=float, default=60, help="seconds for each task")
    options.add_argument("--out", type=pathlib.Path, default=pathlib.Path("proofs"))
    given = options.parse_args()
    sys.path.insert(0, str(ROOT / "python"))
    os.environ.setdefault("TEGULA_LIBRARY", str(given.build / "lib/libtegula.so"))

    from tegula_eval.commands.program_files import find_program
    from tegula_eval.confine import child
    from tegula_eval.proofs import certify
    from tegula_eval.rule import variants
    from tegula_eval.rule.tasks import find_tasks
    variants.warm()
    certify.warm()
    cache = given.out / "variants"
    cache.mkdir(parents=True, exist_ok=True)
    counts, times = collections.defaultdict(collections.Counter), collections.defaultdict(list)
    with open(given.out / "results.jsonl", "w") as results:
        for task in find_tasks(given.root, given.level, given.tasks):
            path = find_program(given.programs, task, ".tgl")
            if path is None:
                continue
            request = {"task": task.source(), "program": path.read_text(), "cache": str(cache.resolve()), "deadline": given.deadline}
            outcome = child.run(prove, request, 4 * given.deadline, 8 << 30)
            told = outcome["answer"] if outcome["kind"] == "done" else {
                "verdict": "undecided", "reason": f"{outcome['kind']}: {outcome.get('message') or outcome.get('stage', '')}",
                "fixed": False, "certificates": [], "seconds": outcome["seconds"]}
            told.setdefault("processor_s", outcome["processor_s"])
            results.write(json.dumps({"task": task.key, **told}) + "\n")
            results.flush()
            counts[task.level][told["verdict"]] += 1
            times[task.level].append((told["processor_s"], told["verdict"]))
            how = " (fixed sizes)" if told["fixed"] else ""
            print(f"{told['processor_s']:7.2f} s  {task.key}: {told['verdict']}{how}{': ' if told['reason'] else ''}"
                  f"{told['reason'][:200]}", flush=True)
    table(counts, times)
    verdicts = set().union(*counts.values()) if counts else set()
    return 4 if verdicts & {"not equal", "less precise"} else 5 if "undecided" in verdicts else 0


def table(counts, times):
    print("\n| level | tasks | equal | on points | undecided | less precise | not equal | decided as equal under 2 s | median s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for level in sorted(counts):
        count, all_times = counts[level], sorted(seconds for seconds, _ in times[level])
        quick = sum(seconds < 2 and verdict.startswith("equal") for seconds, verdict in times[level])
        print(f"| {level} | {len(all_times)} | {count['equal']} | {count['equal on points']} | {count['undecided']} | "
              f"{count['less precise']} | {count['not equal']} | {quick} | {all_times[len(all_times) // 2]:.2f} |")


if __name__ == "__main__":
    sys.exit(main())
