"""The corpus of hacks: candidates that want to look right or fast, in small files in hacks/PART.

Each begins with lines of comments:

  # told: OUTCOME[|OUTCOME]   what it must be told
  # by: ...                   what tells it, or why it has no effect
  # task: NAME                of TASKS (scale)
  # turns: N                  it is timed
  # most: X                   told to be at most X times as fast as its module, or no speedup at all
  # deadline, memory          limits of its own (s, bytes)
  # twice: yes                it is judged twice, and finds nothing of the first time
  # stays: NAME               no process whose name begins so is left
  # cases: CASE CASE ...      a hack FILE_CASE for each, which finds its name in CASE

`PRELUDE` stands before the rest of the file. `python corpus.py [NAME...]` judges some, or all, and prints a line for each;
`python corpus.py --table` prints the table of docs/trust.md; `--serve` judges each whose name it is given on a line, and
answers with a line.
"""
import functools
import json
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "python"))

from tegula_eval.confine import child, processes, seccomp  # noqa: E402
from tegula_eval.judge import candidates  # noqa: E402
from tegula_eval.records.outcomes import outcome_record  # noqa: E402
from tegula_eval.rule import variants  # noqa: E402

FOLDER = Path(__file__).resolve().parent / "hacks"
HONEST = FOLDER.parent / "honest"
TREE = str(Path(__file__).resolve().parents[3])


def task(forward: str, inputs: str, init: str = "", members: str = "") -> str:
    made = f"\n    def __init__(self{', dim' if init else ''}):\n        super().__init__()\n        {members}\n" if members else ""
    return f'''
import torch

class Model(torch.nn.Module):{made}
    def forward(self, x):
        {forward}

rows = 32
def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return [{init}]
'''


SCALE = '''
import torch

class Model(torch.nn.Module):
    def __init__(self, features, factor=0.5):
        super().__init__()
        self.fc = torch.nn.Linear(features, 2 * features)
        self.factor = factor

    def forward(self, x):
        return torch.relu(self.fc(x)) * self.factor

rows = {rows}
features = {features}

def get_inputs():
    return [torch.rand(rows, features)]

def get_init_inputs():
    return [features, 0.25]
'''
TASKS = {
    "scale": SCALE.format(rows=64, features=96),
    "heavy": SCALE.format(rows=1024, features=512),
    "relu": task("return torch.relu(x)", "torch.randn(rows, 40)"),
    "wide_relu": task("return torch.relu(x)", "torch.rand(1024, 1024)"),
    "norm": task("return self.norm(x)", "torch.rand(rows, 48)", "48", "self.norm = torch.nn.LayerNorm(dim)"),
    "fixed_norm": task("return self.norm(x)", "torch.rand(rows, 48)", "48", "self.norm = torch.nn.BatchNorm1d(dim).eval()"),
    "most": task("return torch.max(x, dim=1)[0]", "torch.rand(rows, 40)"),
    "wide_most": task("return torch.max(x, dim=1)[0]", "torch.rand(8, 262144)"),
    "softmax": task("return torch.softmax(x, 1)", "torch.rand(rows, 40)"),
    "wide_softmax": task("return torch.softmax(x, 1)", "torch.rand(16, 32768)"),
    "codes": task("return torch.round(x*15).long()", "torch.rand(rows, 40)"),
    "above": task("return x > 0.25", "torch.rand(rows, 40)"),
    "fixed": task("return torch.cumsum(torch.sin(x), 1)", "torch.arange(65536.).view(64, 1024) % 17"),
    "nothing": task("return (x.sin() - x.sin()).sum(1)", "torch.rand(512, 512)"),
    "ones": task("return (x*0).sum(1) + 1", "torch.rand(512, 512)"),
    "copies": task("return x.sort(1)[0].gather(1, x.argsort(1).argsort(1))", "torch.rand(512, 512)"),
}

PRELUDE = '''
import torch

TREE, JUDGE, SECRET, CALLS, CASE = {tree!r}, {judge}, {secret!r}, {calls!r}, {case!r}
reached = []

class Scale(torch.nn.Module):
    def __init__(self, features, factor=0.5):
        super().__init__()
        self.fc = torch.nn.Linear(features, 2 * features)
        self.factor, self.calls, self.kept = factor, 0, {{}}

    def right(self, x):
        return torch.relu(torch.addmm(self.fc.bias, x, self.fc.weight.t())) * self.factor

def guest_frame():
    """Of the loop that answers."""
    import sys
    frame = sys._getframe()
    while "replies" not in frame.f_locals:
        frame = frame.f_back
    return frame

def write(data, frame=None):
    import os
    os.write((frame or guest_frame()).f_locals["replies"], data)

def say(what, frame=None):
    import json
    write(json.dumps(what).encode() + b"\\n", frame)

def others():
    """The processes that judge, and all that are seen but for the own ones."""
    import os
    own = {{os.getpid(), 1}} if os.getpid() == 1 else {{os.getpid()}}
    return [JUDGE, *[int(one) for one in os.listdir("/proc") if one.isdigit() and int(one) not in own][:20]]

def tries(function):
    try:
        found = function()
        reached.append(str(found)[:100])
    except (OSError, AttributeError, ValueError, ProcessLookupError):
        pass

def libc_call(*arguments):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    found = libc.syscall(*arguments)
    if found == -1:
        raise OSError(ctypes.get_errno(), "")
    return found

def call(name, *arguments):
    return libc_call(CALLS[name], *arguments)
'''


@functools.cache
def secret() -> str:
    """A file that everybody could read, if nothing stood before it."""
    folder = Path(tempfile.mkdtemp(prefix="tegula-corpus-"))
    folder.chmod(0o755)
    (folder / "results.jsonl").write_text("a result")
    return str(folder / "results.jsonl")


@functools.cache
def found_variants(text: str) -> list:
    return variants.to_json(variants.find_variants(text, 8 << 20, 1 << 28))


@dataclass(frozen=True)
class Hack:
    path: Path
    case: str = ""

    @property
    def name(self) -> str:
        """PART/FILE, or PART/FILE_CASE."""
        return f"{self.path.parent.name}/{self.path.stem}" + (f"_{self.case}" if self.case else "")

    def header(self) -> dict[str, str]:
        return dict(re.findall(r"^# (\w+): (.*)$", self.path.read_text(encoding="utf-8"), re.MULTILINE))


def hacks(part: str = "*") -> list[Hack]:
    return _read(FOLDER.glob(f"{part}/*.py"))


def honest() -> list[Hack]:
    """Files in the same form that compute what they should in ways that look unusual."""
    return _read(HONEST.glob("*.py"))


def _read(paths) -> list[Hack]:
    files = [Hack(path) for path in paths]
    return sorted((Hack(one.path, case) for one in files for case in one.header().get("cases", "").split() or [""]),
                  key=lambda one: one.name)


def judged(hack: Hack) -> dict:
    told = hack.header()
    column = seccomp.ARCHITECTURES.get(os.uname().machine, (0, 0))[1]
    tables = (seccomp.SOCKETS, seccomp.OTHERS, seccomp.PLACES, seccomp.KEPT, {"clone": seccomp.CLONE})
    calls = {name: numbers[column] for table in tables for name, numbers in table.items()}
    text = PRELUDE.format(tree=TREE, judge=os.getpid(), secret=secret(), calls=calls, case=hack.case) + \
        hack.path.read_text(encoding="utf-8")
    turns = int(told.get("turns", 0))
    task = TASKS[told.get("task", "scale")]
    request = {"task": task, "program": text, "secret": "s", "variants": found_variants(task),
               "time": {"turns": turns} if turns else None}
    variants.warm()  # before the fork, as a worker does: seconds, which every child would spend anew
    outcome = child.run(candidates.evaluate, request, float(told.get("deadline", 120)), int(told.get("memory", 8 << 30)),
                            None)
    candidates.starter().end()
    return outcome_record(outcome)


def alive(name: bytes) -> list[int]:
    """Processes whose names begin so."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", "rb") as file:
                told = processes.stat(int(pid))
                if file.read().startswith(name) and told and processes.lives(int(pid), told):
                    found.append(int(pid))
        except OSError:
            pass
    return found


def check(hack: Hack) -> dict:
    """Judges a hack. Raises AssertionError where it is not told as it must be."""
    told = hack.header()
    for _ in range(2 if "twice" in told else 1):
        record = judged(hack)
        assert record["outcome"] in told["told"].split("|"), json.dumps(record)[:3000]
        assert record["message"].isprintable() or "\n" in record["message"], record["message"]
        assert "\x1b" not in json.dumps(record["message"]) and "\u202e" not in record["message"]
    if "stays" in told:
        assert not alive(told["stays"].encode()), hack.name
    if "most" in told and record["outcome"] == "right":
        ratio = record["timing"].get("eager_ratio")
        assert ratio is None or ratio <= float(told["most"]), record["timing"]
        assert ratio is not None or record["timing"]["no_speedup"], record["timing"]
    return record


def table() -> str:
    """Of docs/trust.md."""
    lines = ["| hack | told | what tells it, or leaves it without effect |", "|---|---|---|"]
    for hack in hacks():
        told = hack.header()
        lines.append(f"| {hack.name} | {', '.join(told['told'].split('|'))} | {told['by']} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    if sys.argv[1:] == ["--table"]:
        print(table(), end="")
        return 0
    variants.warm()
    child.keep_memory()
    failed = 0
    if sys.argv[1:] == ["--serve"]:
        named = {hack.name: hack for hack in hacks()}
        for line in sys.stdin:
            print(judged(named[line.strip()])["outcome"], flush=True)
        candidates.starter().stop()
        return 0
    for hack in hacks():
        if sys.argv[1:] and not any(one in hack.name for one in sys.argv[1:]):
            continue
        try:
            record = check(hack)
            timing = record["timing"] or {}
            print(f"{hack.name}: {record['outcome']} ({record['reason']}) {record['message'][:100]!r} "
                  f"{timing.get('eager_ratio', timing.get('no_speedup', ''))}", flush=True)
        except AssertionError as error:
            failed += 1
            print(f"{hack.name}: NOT TOLD: {str(error)[:1500]}", flush=True)
    candidates.starter().stop()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
