#!/usr/bin/env python3
"""Figures of docs/trust.md: how alike identical candidates are told, and what judging one costs.

  eval_trust.py pairs [--part=time] [--only NAME...] [--hacks=N] [--turns=20]
                                                   two identical honest candidates, one beside a hack (of a part of the corpus) that
                                                   is judged at the same time: their speedups, and by how much they differ
  eval_trust.py cost [--count=8] [--against=TREE]  seconds of the processor of judging a candidate, all its processes counted,
                                                   in turns with the judge of another tree of this repository
"""
import argparse
import json
import os
import select
import statistics
import subprocess
import sys
import time
from pathlib import Path

LEAST_ALONE = 15
TREE = Path(__file__).resolve().parents[1]
EVAL = TREE / "test" / "python" / "eval"
HONEST = '''
import torch
class ModelNew(torch.nn.Module):
    def __init__(self, features, factor=0.5):
        super().__init__()
        self.fc = torch.nn.Linear(features, 2 * features)
        self.factor = factor
    def forward(self, x):
        return torch.relu(torch.addmm(self.fc.bias, x, self.fc.weight.t())) * self.factor
'''

# Judges the honest candidate `count` times in one process, after once to warm it; -1: whenever a line comes. Reads a
# tree's own package.
JUDGE = r'''
import json, os, resource, sys, tempfile, time
tree, text, turns, count, task = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
sys.path.insert(0, tree + "/python")
from tegula_eval.confine import child
from tegula_eval.judge import candidates
from tegula_eval.records.outcomes import outcome_record
from tegula_eval.rule import variants
child.keep_memory()
variants.warm()
found = variants.to_json(variants.find_variants(task, 8 << 20, 1 << 28))
cache = tempfile.mkdtemp()
candidates.starter()
def processor():
    """Of this process, its children that have ended, and the process that starts guests with its own."""
    with open(f"/proc/{candidates.starter().pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    there = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return there + sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
def rounds():
    """`count` and one to warm up, or as many as lines come."""
    yield from range(count + 1) if count >= 0 else (1 for _ in sys.stdin)
for number in rounds():
    request = {"task": task, "program": text, "secret": "s", "seeds": 2, "variants": found, "cache": cache,
               "time": {"turns": turns} if turns else None}
    used, begun = processor(), time.perf_counter()
    outcome = child.run(candidates.evaluate, request, 300, 8 << 30, None)
    candidates.starter().end()
    record = outcome_record(outcome)
    if number:
        print(json.dumps({"outcome": record["outcome"], "message": record["message"], "processor_s": processor() - used,
                          "clock_s": time.perf_counter() - begun,
                          "ratio": (record["timing"] or {}).get("eager_ratio")}), flush=True)
candidates.starter().stop()
'''


def judge(tree: Path, turns: int, count: int, task: str) -> list[dict]:
    told = subprocess.run([sys.executable, "-c", JUDGE, str(tree), HONEST, str(turns), str(count), task],
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    return [json.loads(line) for line in told.splitlines()]


class Served:
    """A process that judges whenever it is given a line, and answers with one."""

    def __init__(self, command: list[str]):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(self, line: str) -> None:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answers(self, seconds: float) -> bool:
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def answer(self) -> str:
        line = self.process.stdout.readline()
        assert line, f"it has ended: {self.process.wait()}"
        return line.strip()


def pairs(options, corpus) -> int:
    """Each hack is judged again and again while the honest candidate beside it is judged once."""
    hacks = [one.name for one in corpus.hacks(options.part) if not options.only or one.name in options.only][:options.hacks]
    judge = Served([sys.executable, "-c", JUDGE, str(TREE), HONEST, str(options.turns), "-1", corpus.TASKS["heavy"]])
    attacker = Served([sys.executable, str(EVAL / "corpus.py"), "--serve"])

    def ratio() -> float:
        told = json.loads(judge.answer())
        assert told["outcome"] == "right", told
        return told["ratio"]

    alone, beside, failed = [], [], 0
    for _ in range(1 + LEAST_ALONE):
        judge.ask("")
        alone.append(ratio())
    del alone[0]  # which warms it
    for name in hacks:
        attacker.ask(name)
        time.sleep(0.5)  # until it runs
        judge.ask("")
        while not judge.answers(0.01):
            if attacker.answers(0.01):
                attacker.answer()
                attacker.ask(name)
        beside.append(ratio())
        attacker.answer()
        quiet = statistics.median(alone)
        apart = beside[-1] / quiet - 1
        failed += abs(apart) > 0.1
        print(f"{name:40} alone {quiet:.3f}  beside it {beside[-1]:.3f}  {100 * apart:+.1f} %", flush=True)
    print(f"{len(hacks)} pairs, {failed} further apart than 10 %; alone {min(alone):.3f} to {max(alone):.3f}, beside "
          f"{min(beside):.3f} to {max(beside):.3f}, medians {statistics.median(alone):.3f} and {statistics.median(beside):.3f}")
    return 1 if failed else 0


def cost(options, corpus) -> int:
    for turns in (0, 20):
        for name in ("scale", "heavy"):
            ours, theirs = [], []
            for _ in range(options.rounds):
                ours += judge(TREE, turns, options.count, corpus.TASKS[name])
                if options.against:
                    theirs += judge(options.against, turns, options.count, corpus.TASKS[name])
            told = statistics.median(one["processor_s"] for one in ours)
            line = f"{name}, {turns} timed calls: {told:.3f} s of the processor"
            if theirs:
                before = statistics.median(one["processor_s"] for one in theirs)
                line += f", {options.against.name}: {before:.3f} s ({100 * (told / before - 1):+.0f} %)"
            print(line, flush=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("pairs", "cost"))
    parser.add_argument("--part", default="*", help="of the corpus: protocol, reach, results, time")
    parser.add_argument("--only", nargs="*", help="hacks by name")
    parser.add_argument("--hacks", type=int, default=1000)
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--count", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--against", type=Path)
    options = parser.parse_args()
    sys.path[:0] = [str(TREE / "python"), str(EVAL)]
    import corpus
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    return {"pairs": pairs, "cost": cost}[options.what](options, corpus)


if __name__ == "__main__":
    sys.exit(main())
