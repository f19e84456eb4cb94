#!/usr/bin/env python3
"""Holds `tegula prove` against programs that are known to be wrong, and known to be right.

Wrong ones are mutants: one edit of a program (a dropped term, a window that is off by one, another axis, swapped
operands or parameters, another constant, lower precision). One that is called equal is held against the original by
the interpreter, at other sizes and data; a difference there is a false accept. Right ones are variants (renamed,
commuted, tiled by the scheduler), of which none may be called different.

    test/prove/mutants.py BUILD [--count=100] [--seed=0] [--kind=mutants|variants|both] [--list] [PROGRAM...]
"""
import argparse
import collections
import concurrent.futures
import difflib
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
EQUAL, DIFFERENT, UNDECIDED = 0, 4, 5
NAME = r"[A-Za-z_][A-Za-z_0-9]*"


def bodies(text):
    """Ranges of the text between the braces of kernels, comments left out."""
    blank = re.sub(r"#[^\n]*", lambda m: " " * len(m[0]), text)
    ranges, depth, start = [], 0, 0
    for at, char in enumerate(blank):
        if char == "{":
            depth += 1
            start = at + 1 if depth == 1 else start
        elif char == "}":
            depth -= 1
            if depth == 0:
                ranges.append((start, at))
    return blank, ranges


def edit(text, match, new):
    return text[: match.start()] + new + text[match.end() :]


def places(text, pattern):
    blank, ranges = bodies(text)
    return [m for m in re.finditer(pattern, blank) if any(lo <= m.start() < hi for lo, hi in ranges)]


def pick(rng, text, pattern):
    found = places(text, pattern)
    return rng.choice(found) if found else None


# One wrong edit each: a new text, or None where the program has no place for it.


def other_operator(rng, text):
    match = pick(rng, text, r" ([-+*/]) ")
    return match and edit(text, match, f" {rng.choice([o for o in '+-*/' if o != match[1]])} ")


def dropped_term(rng, text):
    match = pick(rng, text, rf" [-+*] ({NAME}(\[[^][]*\])?|\d+\.\d+|{NAME}\([^()]*\))")
    return match and edit(text, match, "")


def other_constant(rng, text):
    match = pick(rng, text, r"(?<![\w.\[])\d+\.\d*(e-?\d+)?(?![\w.])")
    return match and edit(text, match, repr(float(match[0]) * rng.choice([0.5, 1.01, 2.0, 1.001]) + rng.choice([0, 1e-3])))


def other_integer(rng, text):
    match = pick(rng, text, r"(?<=[ (\[+\-*:,])\d+(?=[ )\],:\-+*])")
    return match and edit(text, match, str(max(0, int(match[0]) + rng.choice([-1, 1]))))


def shifted_subscript(rng, text):
    match = pick(rng, text, rf"(?<=[\[,]) ?({NAME})(?=[,\]])")
    return match and edit(text, match, f" {match[1]} {rng.choice('+-')} 1")


def shorter_range(rng, text):
    match = pick(rng, text, rf"\bin ({NAME})\b(?!\s*\()")
    if match:
        return edit(text, match, f"in {rng.choice(['0', '1'])}:{match[1]}{rng.choice([' - 1', ''])}")
    match = pick(rng, text, rf" for ({NAME})(?=[),])")
    return match and edit(text, match, f" for {match[1]} if {match[1]} > 0")


def left_out_point(rng, text):
    match = pick(rng, text, rf" for ({NAME})(?=[),])")
    return match and edit(text, match, f" for {match[1]} if {match[1]} != {rng.choice([0, 1, 2])}")


def swapped_axes(rng, text):
    match = pick(rng, text, rf"\[({NAME}), ({NAME})((?:, [^][]*)?)\]")
    return match and match[1] != match[2] and edit(text, match, f"[{match[2]}, {match[1]}{match[3]}]") or None


def swapped_parameters(rng, text):
    found = places(text, rf"\b({NAME})(?=\[)")
    names = sorted({m[1] for m in found})
    if len(names) < 2:
        return None
    match = rng.choice(found)
    return edit(text, match, rng.choice([n for n in names if n != match[1]]))


def other_function(rng, text):
    groups = [["max", "min", "sum", "mean"], ["exp", "sinh", "cosh", "exp2"], ["maximum", "minimum"], ["sqrt", "cbrt", "rsqrt"],
              ["sin", "cos", "tanh"], ["sigmoid", "tanh", "relu", "silu"], ["argmax", "argmin"], ["log", "log2"],
              ["cumsum", "cumprod"], ["softmax", "log_softmax"]]
    known = {name: group for group in groups for name in group}
    match = pick(rng, text, r"\b(" + "|".join(known) + r")(?=\()")
    return match and edit(text, match, rng.choice([n for n in known[match[1]] if n != match[1]]))


def other_condition(rng, text):
    match = pick(rng, text, r" (<=|>=|<|>|==|!=) ")
    return match and edit(text, match, f" {rng.choice([o for o in ['<=', '>=', '<', '>', '=='] if o != match[1]])} ")


def lower_precision(rng, text):
    match = pick(rng, text, rf"\b{NAME}\[[^][]*\](?! *(=|\+=|:))")
    return match and edit(text, match, f"{rng.choice(['bf16', 'f16'])}({match[0]})")


WRONG = [other_operator, dropped_term, other_constant, other_integer, shifted_subscript, shorter_range, left_out_point,
         swapped_axes, swapped_parameters, other_function, other_condition, lower_precision]


# One right edit each.


def renamed_index(rng, text):
    match = pick(rng, text, rf" for ({NAME})(?=[),\n ])")
    if not match or re.search(r"\bqz\b", text):
        return None
    return re.sub(rf"\b{match[1]}\b(?!\()", "qz", text)


def commuted(rng, text):
    match = pick(rng, text, rf"(?<=[(=] )({NAME}\[[^][]*\]) ([*+]) ({NAME}\[[^][]*\])(?=( for|\)|\n))")
    match = match or pick(rng, text, rf"(?<=\()({NAME}\[[^][]*\]) ?([*+]) ?({NAME}\[[^][]*\])(?=( for|\)|\n))")
    return match and edit(text, match, f"{match[3]} {match[2]} {match[1]}")


def neutral(rng, text):
    match = pick(rng, text, rf"\b({NAME}\[[^][]*\])(?! *(=|\+=|:|,? *\w* *=|in\b))")
    return match and edit(text, match, rng.choice([f"(1.0 * {match[0]})", f"(2.0 * {match[0]} - {match[0]})", f"(-(-{match[0]}))"]))


def power_of_two(rng, text):
    match = pick(rng, text, r"\bexp\(([^()]*)\)")
    return match and edit(text, match, f"exp2(({match[1]}) * 1.4426950408889634)")


def root(rng, text):
    match = pick(rng, text, r"\b(sqrt|rsqrt)\(([^()]*)\)")
    return match and edit(text, match, f"(({match[2]}) ** {0.5 if match[1] == 'sqrt' else -0.5})")


RIGHT = [renamed_index, commuted, neutral, power_of_two, root]


class Judge:
    def __init__(self, build, folder):
        self.tegula, self.interpret = build / "bin/tegula", build / "bin/tegula-interpret"
        self.folder = folder

    def run(self, *command, limit=120):
        try:
            done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return 124, "", ""
        return done.returncode, done.stdout, done.stderr

    def check(self, path):
        return self.run(self.tegula, "check", path)[0] == 0

    def prove(self, path, *options):
        return self.run(self.tegula, "prove", path, *options)

    def differs(self, path, original, seed):
        """Whether the interpreter finds a difference, in what of 24 runs both programs take."""
        texts = []
        for source in (path, original):
            target = self.folder / f"{source.stem}.{seed}.mlir"
            if self.run(self.tegula, "compile", source, "--emit=tgl", "-o", target)[0]:
                return None
            texts.append(target)
        for fresh in range(2):
            code, out, _ = self.prove(original, f"--against={original}", "--json", f"--seed={seed * 31 + fresh + 1}")
            if not out.startswith("{"):
                return None
            for point in json.loads(out)["equal"]["points"]:
                sizes = ",".join(f"{n}={v}" for n, v in point["sizes"].items())
                for data in ("normal", "indices"):
                    code, _, err = self.run(self.interpret, texts[0], f"--against={texts[1]}", f"--data={data}", "--quiet",
                                            "--tolerance=2e-4", f"--seed={seed}", *([f"-d={sizes}"] if sizes else []))
                    if code == 1 and "differs" in err:
                        return err.strip().splitlines()[-1]
        return ""


def mutant(judge, task):
    number, seed, program, name, wrong = task
    rng = random.Random(f"{seed} {number} {name}")
    text = program.read_text()
    new = globals()[name](rng, text)
    if not new or new == text:
        return None
    path = judge.folder / f"m{number}.tgl"
    path.write_text(new)
    if not judge.check(path):
        return None
    code, out, err = judge.prove(path, f"--against={program}", f"--seed={number}")
    word = out.splitlines()[0] if out else err.strip().splitlines()[-1] if err.strip() else ""
    if code == 124:
        code, word = UNDECIDED, "more than 120 s"
    difference = judge.differs(path, program, number) if wrong and code == EQUAL else ""
    return name, program, code, word, difference, path


def edited(program, path):
    """The lines of a program that an edit changed, before and after."""
    lines = difflib.unified_diff(program.read_text().splitlines(), path.read_text().splitlines(), lineterm="", n=0)
    return "".join(f"    {line}\n" for line in lines if not line.startswith(("---", "+++", "@@")))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("build", type=pathlib.Path)
    options.add_argument("programs", nargs="*", type=pathlib.Path)
    options.add_argument("--count", type=int, default=100, help="mutants, or variants, that the checker takes")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--kind", choices=["mutants", "variants", "both"], default="both")
    options.add_argument("--list", action="store_true", help="print every mutant that is called equal with the lines that were edited, and why others are undecided")
    options.add_argument("--jobs", type=int, default=2)
    given = options.parse_args()
    programs = given.programs or sorted((ROOT / "dsl/kernels").rglob("*.tgl")) + sorted((ROOT / "bench/programs").glob("*.tgl"))
    failures = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        judge = Judge(given.build, pathlib.Path(folder))
        for kind, edits in (("mutants", WRONG), ("variants", RIGHT)):
            if given.kind not in (kind, "both"):
                continue
            rng = random.Random(f"{given.seed} {kind}")
            tasks, counts, number = [], collections.Counter(), 0
            while sum(counts.values()) < given.count and number < 40 * given.count:
                tasks = []
                for _ in range(8 * given.jobs):
                    number += 1
                    tasks.append((number, given.seed, rng.choice(programs), rng.choice(edits).__name__, kind == "mutants"))
                for result in pool.map(lambda task: mutant(judge, task), tasks):
                    if not result or sum(counts.values()) == given.count:
                        continue
                    name, program, code, word, difference, path = result
                    what = {EQUAL: "equal", DIFFERENT: "different", UNDECIDED: "undecided"}.get(code, f"exit code {code}")
                    wrong = bool(difference) or code not in (EQUAL, DIFFERENT, UNDECIDED)
                    wrong |= kind == "variants" and code == DIFFERENT
                    counts["false" if wrong else what] += 1
                    failures += wrong
                    if wrong or given.list and code != DIFFERENT:
                        print(f"{'FALSE ' if wrong else ''}{name} of {program.name}: {word} {difference}")
                        print("".join(f"    {line}\n" for line in path.read_text().splitlines()) if wrong else edited(program, path), end="")
                        sys.stdout.flush()
            print(f"{kind}: {sum(counts.values())}: " + ", ".join(f"{n} {w}" for w, n in sorted(counts.items())))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
