"""A worker of the service: what a task's own text, which runs in a child of it, cannot do to others."""
import json
import os
import threading
import time
from pathlib import Path

import pytest
from conftest import RIGHT, SCALE, OwnPool

from tegula_eval.program import runner
from tegula_eval.records.outcomes import outcome_record
from tegula_eval.workers.pool import Worker

try:
    runner.library_path()
except FileNotFoundError as missing:
    pytest.skip(str(missing), allow_module_level=True)

WRONG = RIGHT.replace("relu(", "(")
FORGED = json.dumps({"kind": "done", "seconds": 0.1, "stage": "x",
                     "answer": {"outcome": "right", "reason": "", "message": "forged", "flags": [], "cases": [], "timing": None}})


@pytest.fixture(scope="module")
def worker():
    os.environ["SOME_TOKEN"] = "not for tasks"
    one = Worker()
    del os.environ["SOME_TOKEN"]
    yield one
    one.stop()


def judged(worker, task, program, deadline_s=120, **options):
    request = {"task": task, "program": program, "secret": "s", "seeds": 1, "bytes": 1 << 16, "flops": 1 << 20, **options}
    return outcome_record(worker.judge(request, deadline_s, 4 << 30))


def others_are_judged(worker, process):
    """By the same process, each with its own answer."""
    assert [judged(worker, SCALE, program)["outcome"] for program in (RIGHT, WRONG, "kernel k(", RIGHT)] == \
        ["right", "wrong", "refused", "right"]
    assert worker.process is process


@pytest.mark.parametrize("numbers", [range(3, 200), (1,)])
def test_lines_to_every_descriptor(worker, numbers):
    others_are_judged(worker, worker.process or worker.start() or worker.process)
    text = f"""
import os
for number in {list(numbers)}:
    for line in ({FORGED!r}, {FORGED!r}[:-1] + ', "id": 3}}'):
        try: os.write(number, line.encode() + b"\\n")
        except OSError: pass
"""
    process = worker.process
    judged(worker, text + SCALE, WRONG)
    others_are_judged(worker, process)


def test_lines_to_descriptors_of_other_processes(worker):
    """Its parent's and those of whoever started that."""
    others_are_judged(worker, worker.process or worker.start() or worker.process)
    text = f"""
import os
here, pids = os.getppid(), []
while here > 1:
    pids.append(here)
    here = int(open(f"/proc/{{here}}/stat", "rb").read().rsplit(b")", 1)[1].split()[1])
for pid in pids:
    try: names = os.listdir(f"/proc/{{pid}}/fd")
    except OSError: continue
    for name in names:
        try:
            place = os.open(f"/proc/{{pid}}/fd/{{name}}", os.O_WRONLY | os.O_NONBLOCK)
            if not os.isatty(place) and not os.path.isfile(f"/proc/self/fd/{{place}}"):
                os.write(place, {FORGED!r}.encode() + b"\\n")
        except OSError: pass
"""
    process = worker.process
    judged(worker, text + SCALE, WRONG)
    others_are_judged(worker, process)


@pytest.mark.parametrize("line", [
    '{"answer": ' + "[" * 100000 + "]" * 100000 + "}", '{"answer": {"x": ' + "[" * 300 + "]" * 300 + "}}", "5", "[]",
    '{"answer": 3}', '{"failed": 3}', '{"stage": {"a": []}}', '{"memory": []}', "9" * 10000, "\\xff"])
def test_lines_that_are_no_answers(worker, line):
    others_are_judged(worker, worker.process or worker.start() or worker.process)
    text = f"""
import os
for number in range(3, 64):
    try:
        os.write(number, {line!r}.encode("latin-1") + b"\\n")
    except OSError: pass
os._exit(0)
"""
    process = worker.process
    assert judged(worker, text + SCALE, RIGHT)["outcome"] in ("crashed", "memory", "failed")
    others_are_judged(worker, process)


def test_secrets_of_the_environment(worker):
    seen = judged(worker, "import os\nraise ValueError(sorted(os.environ))\n" + SCALE, RIGHT)["message"]
    assert "PATH" in seen and "SOME_TOKEN" not in seen


def test_a_task_writes_only_to_its_own_folder(worker, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    text = f"""
import os, tempfile
with tempfile.NamedTemporaryFile() as own:
    own.write(b"x")
try: open({str(victim)!r}, "w").write("changed")
except OSError: pass
try: open({str(tmp_path / 'new')!r}, "w")
except OSError: pass
"""
    assert judged(worker, text + SCALE, RIGHT, cache=str(tmp_path))["outcome"] == "right"
    assert victim.read_text() == "as it was" and not (tmp_path / "new").exists()
    variants, = tmp_path.glob("*.json")  # found by the task's process, written by the worker
    variants.write_text("[")
    assert judged(worker, text + SCALE, RIGHT, cache=str(tmp_path))["outcome"] == "right" and variants.read_text() != "["


def test_what_a_strangers_task_may_not(worker, tmp_path):
    """What a candidate may not either: read others' files, open sockets, change its judge's limits or end it."""
    other = tmp_path / "submissions.sqlite"
    other.write_text("a secret")
    text = f"""
import os, resource, signal, socket
done = []
def tried(name, function):
    try: function()
    except OSError: return
    done.append(name)
tried("read", lambda: open({str(other)!r}).read())
tried("list", lambda: os.listdir({str(tmp_path)!r}))
tried("socket", lambda: socket.socket(socket.AF_UNIX))
tried("udp", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
tried("limits", lambda: resource.prlimit(os.getppid(), resource.RLIMIT_FSIZE, (0, 0)))
tried("affinity", lambda: os.sched_setaffinity(os.getppid(), {{0}}))
tried("nice", lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), 19))
tried("kill", lambda: os.kill(os.getppid(), signal.SIGKILL))
tried("environment", lambda: open(f"/proc/{{os.getppid()}}/environ").read())
tried("memory", lambda: open(f"/proc/{{os.getppid()}}/mem", "r+b"))
tried("shared memory", lambda: open("/dev/shm/left", "w"))
if done: raise ValueError(done)
"""
    process = worker.process
    record = judged(worker, text + SCALE, RIGHT, is_foreign=True)
    assert record["outcome"] == "right", record
    others_are_judged(worker, process or worker.process)


@pytest.mark.parametrize("hides", ["", "ctypes.CDLL(None).prctl(15, b'\\xff) Z 1 \\xff', 0, 0, 0)",
                                   "threading.Thread(target=time.sleep, args=(600,)).start(); ctypes.CDLL(None).syscall(60, 0)"])
def test_processes_end_with_their_task(worker, hides):
    """Those too that have left its session, that have a name of no characters, or whose first thread has ended."""
    text = f"""
import ctypes, os, threading, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        {hides}
        time.sleep(600)
    os._exit(0)
"""
    process = worker.process
    children = set(living())
    judged(worker, text + SCALE, RIGHT)
    end = time.monotonic() + 20
    while set(living()) - children - {worker.process.pid} and time.monotonic() < end:
        time.sleep(0.05)
    assert not set(living()) - children - {worker.process.pid}
    assert process in (None, worker.process)


def living():
    """Of this process's descendants."""
    parents = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (place / "stat").read_bytes().rsplit(b")", 1)[1].split()[:2]
        except OSError:
            continue
        if state != b"Z" or len(list((place / "task").glob("*"))) > 1:
            parents[int(place.name)] = int(parent)
    for pid in parents:
        here = pid
        while here in parents and here != os.getpid():
            here = parents[here]
        if here == os.getpid() and pid != here:
            yield pid


def test_a_worker_that_is_killed():
    """Another one judges what it was asked."""
    pool = OwnPool(1, 120, 4 << 30)
    try:
        pool.start()
        asked = {"task": "import time\ntime.sleep(1.5)\n" + SCALE, "program": RIGHT, "secret": "s", "seeds": 1, "bytes": 1 << 16,
                 "flops": 1 << 20}
        outcomes = []
        waiter = threading.Thread(target=lambda: outcomes.append(pool.judge(asked)))
        waiter.start()
        time.sleep(0.5)
        pool._all[0].process.kill()
        waiter.join()
        assert outcome_record(outcomes[0])["outcome"] == "right" and pool.restarts() == 1
    finally:
        pool.stop()


def test_what_a_killed_worker_leaves():
    """A process that a task has started, in a session of its own, ends with the worker of that task."""
    text = """
import os, time
if os.fork() == 0:
    os.setsid()
    time.sleep(600)
time.sleep(600)
"""
    before, pool = set(living()), OwnPool(1, 120, 4 << 30)
    try:
        pool.start()
        asked = {"task": text + SCALE, "program": RIGHT, "secret": "s", "seeds": 1, "bytes": 1 << 16, "flops": 1 << 20}
        waiter = threading.Thread(target=lambda: pool.judge(asked))
        waiter.start()
        for _ in range(3):  # times that it is tried
            worker, end = pool._all[0], time.monotonic() + 60
            while len(set(living()) - before) < 3:  # the worker, its task, and what that has started
                assert time.monotonic() < end
                time.sleep(0.05)
            left = set(living()) - before
            worker.process.kill()
            while any(Path(f"/proc/{pid}").exists() for pid in left):  # whoever is their parent by now
                assert time.monotonic() < end
                time.sleep(0.01)
        waiter.join()
    finally:
        pool.stop()


def test_a_task_that_ends_its_worker():
    """Is told so, after some tries, where nothing keeps it from that."""
    class Dies(Worker):
        def command(self, descriptor):
            return ["bash", "-c", f"echo '{{}}' >&{descriptor}; read line <&{descriptor}"]

    pool = OwnPool(1, 120, None)
    pool._all[0].__class__ = Dies
    assert pool.judge({}) == {"kind": "crashed", "stage": "worker", "message": "the worker died", "seconds": 0.0}
    assert pool.restarts() == 2
    pool.stop()
