#!/usr/bin/env python3
"""A thousand real submissions from many clients to `tegula-eval serve`, among clients that mean it harm, while it and its workers are killed.

Usage: eval_load.py --out=FOLDER [--root=TASKS --programs=FOLDER] [--count=1000] [--tasks=25] [--clients=32] [--jobs=2]
                    [--kill-at=0.4] [--kill-workers=50] [--no-hostile]

Each submission has a salt, so that all are judged. Every fourth is another task's program, which is not right; every fifth
calls a function that only this submission names, which its answer must name too. When a share of KILL_AT is answered the
service gets SIGKILL, and another one goes on; after every KILL_WORKERS answers one of its workers does. Meanwhile others open
connections and send nothing, half of a request, or more than is taken, guess tokens, send what is no submission, and submit tasks
that write forged answers to whatever they reach and end their parents.

Fails where a submission is lost, is answered twice with different answers, has another's answer or another outcome than it
should, where the service's memory grows by more than 40 MiB after its first hundred answers, or a killed service leaves a process.
"""
import argparse
import collections
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

TREE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TREE / "python"))

from tegula_eval.commands.program_files import find_program  # noqa: E402
from tegula_eval.client import Client, ServiceError  # noqa: E402
from tegula_eval.rule.tasks import find_tasks  # noqa: E402

TRIAL = TREE / "bench" / "teaching" / "round5"
TOKEN = "the token of a load test"
GROWTH_MIB = 40


class Service:
    def __init__(self, folder: Path, port: int, jobs: int):
        self.port = port
        environment = {**os.environ, "TEGULA_EVAL_TOKEN": TOKEN, "PYTHONPATH": str(TREE / "python")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tegula_eval", "serve", f"--port={port}", f"--jobs={jobs}", f"--out={folder}",
             "--bytes=1M", "--flops=1.6e7", "--rate=1000000"], env=environment, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()  # its address, once its workers are there

    def memory_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024

    def descendants(self) -> list[int]:
        """Its workers and all that they have started, in that order."""
        children = collections.defaultdict(list)
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                children[int((place / "stat").read_bytes().rsplit(b")", 1)[1].split()[1])].append(int(place.name))
        found = list(children[self.process.pid])
        for one in found:
            found += children[one]
        return found

    def workers(self) -> list[int]:
        found = []
        for pid in self.descendants():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                parent = int(Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()[1])
                if b"tegula_eval.workers.worker" in words and parent == self.process.pid:
                    found.append(pid)
        return found


def submissions(options) -> list[tuple[str, dict, object]]:
    """Key, body, and what its answer must be: (outcome or None, word of its message)."""
    found = [(task, path) for task in find_tasks(options.root) if (path := find_program(options.programs, task)) is not None]
    found = found[::max(1, len(found) // options.tasks)][:options.tasks]
    asked = []
    for number in range(options.count):
        place = number % len(found)
        task, path = found[place]
        program, expected = path.read_text(), ("right", "")
        if number % 5 == 4:
            name = f"only_in_{number}"
            program, expected = f"kernel k(x: f32[N]) -> (y: f32[N]) {{ y[i] = {name}(x[i]) }}", ("refused", name)
        elif number % 4 == 3:
            program, expected = found[(place + 1) % len(found)][1].read_text(), (None, "")
        asked.append((task.key, {"task": task.source(), "program": program, "seeds": 1, "salt": str(number)}, expected))
    return asked


FORGED = json.dumps({"kind": "done", "id": 7, "seconds": 0.1, "stage": "x", "answer": {
    "outcome": "right", "reason": "", "message": "forged", "flags": [], "cases": [], "timing": None}})
POISON = f"""
import os, signal
for pid in ["self", *[one for one in os.listdir("/proc") if one.isdigit()]]:
    try: names = os.listdir(f"/proc/{{pid}}/fd")
    except OSError: continue
    for name in names:
        try:
            place = os.open(f"/proc/{{pid}}/fd/{{name}}", os.O_WRONLY | os.O_NONBLOCK) if pid != "self" else int(name)
            if not os.path.isfile(f"/proc/self/fd/{{place}}"): os.write(place, {FORGED!r}.encode() + b"\\n")
        except OSError: pass
if os.fork() == 0:
    os.setsid()
    while True: pass
try: os.kill(os.getppid(), signal.SIGKILL)
except OSError: pass
raise ValueError(os.environ.get("TEGULA_EVAL_TOKEN"))
"""
MALFORMED = [r'{"task": "\ud800", "program": "p"}', '{"task": "t", "program": "p", "seeds": NaN}', "[" * 5000, "{", "null", b"\xff",
             '{"task": "t", "program": {}}', '{"task": "t", "program": "p", "unknown": 1}', '{"a": ' * 5000]


class Hostile:
    """Threads that go on until `end`. `wrong` collects answers that they should not have had; `done` counts what was tried."""

    def __init__(self, port: int):
        self.port, self.ended, self.wrong, self.done = port, threading.Event(), [], collections.Counter()
        self.threads = [threading.Thread(target=self._again, args=(one,), daemon=True)
                        for one in (self.slow_headers, self.half_bodies, self.huge_bodies, self.malformed, self.flood, self.guess, self.poison)]
        for thread in self.threads:
            thread.start()

    def end(self) -> None:
        self.ended.set()
        for thread in self.threads:
            thread.join()

    def _again(self, function) -> None:
        while not self.ended.is_set():
            try:
                function()
                self.done[function.__name__] += 1
            except (OSError, ServiceError):  # it is being started again, or has thrown this one out
                pass
            self.ended.wait(0.2)

    def _connect(self):
        return contextlib.closing(socket.create_connection(("127.0.0.1", self.port), timeout=20))

    def _post(self, token: str, more: str = "") -> bytes:
        return f"POST /v1/evaluations HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer {token}\r\n{more}\r\n".encode()

    def _expect(self, connection, *statuses: int) -> None:
        words = connection.recv(4096).split()
        if not words:
            raise ConnectionError("it was closed without an answer")
        if int(words[1]) not in statuses:
            self.wrong.append((sys._getframe(1).f_code.co_name, words[1]))

    def slow_headers(self) -> None:
        with contextlib.ExitStack() as stack:
            opened = [stack.enter_context(self._connect()) for _ in range(100)]
            for _ in range(15):
                for one in opened:
                    with contextlib.suppress(OSError):
                        one.sendall(b"G")
                self.ended.wait(1)

    def half_bodies(self) -> None:
        with contextlib.ExitStack() as stack:
            for one in [stack.enter_context(self._connect()) for _ in range(20)]:
                one.sendall(self._post(TOKEN, "Content-Length: 100000\r\n") + b'{"task": "half')
            self.ended.wait(2)

    def huge_bodies(self) -> None:
        for token, statuses in ((TOKEN, (413,)), ("guess", (401,))):
            with self._connect() as connection:
                connection.sendall(self._post(token, "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"))
                try:
                    for _ in range(30):
                        connection.sendall(b"100000\r\n" + b"#" * (1 << 20) + b"\r\n")
                except ConnectionError:
                    continue
                self._expect(connection, *statuses)

    def malformed(self) -> None:
        for body in MALFORMED:
            data = body.encode() if isinstance(body, str) else body
            with self._connect() as connection:
                connection.sendall(self._post(TOKEN, f"Content-Length: {len(data)}\r\n") + data)
                self._expect(connection, 400, 422)

    def flood(self) -> None:
        with contextlib.ExitStack() as stack:
            for _ in range(300):
                stack.enter_context(self._connect())

    def guess(self) -> None:
        for number in range(50):
            with self._connect() as connection:
                connection.sendall(self._post(f"guess {number}", "Content-Length: 2\r\n") + b"{}")
                self._expect(connection, 401)

    def poison(self) -> None:
        client = Client(f"127.0.0.1:{self.port}", TOKEN, patience_s=5)
        reward = client.evaluate(POISON, "kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }", timeout_s=120, salt=str(random.random()))
        if TOKEN in json.dumps(reward) or reward["right"] and reward["message"] != "forged":
            self.wrong.append(("poison", reward["message"]))
        self.ended.wait(3)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, default=TRIAL / "tasks")
    parser.add_argument("--programs", type=Path, default=TRIAL / "programs")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--tasks", type=int, default=25)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kill-at", type=float, default=0.4)
    parser.add_argument("--kill-workers", type=int, default=50)
    parser.add_argument("--no-hostile", action="store_true")
    options = parser.parse_args()
    asked = submissions(options)
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    service, started = Service(options.out, port, options.jobs), time.monotonic()
    hostile = None if options.no_hostile else Hostile(port)
    client = Client(f"127.0.0.1:{port}", TOKEN)
    keys: dict[int, str] = {}
    answers: dict[int, dict] = {}
    changed = []

    def ask(first: int) -> None:
        own = range(first, len(asked), options.clients)
        for number in own:
            keys[number] = client.submit(**asked[number][1])
        for number in own:
            answers[number] = client.rewards([keys[number]])[0]
            # Sent once more it is the same submission, answered already.
            if client.submit(**asked[number][1]) != keys[number] or client.look(keys[number]) != answers[number]:
                changed.append(number)

    threads = [threading.Thread(target=ask, args=(one,), daemon=True) for one in range(options.clients)]
    for thread in threads:
        thread.start()
    is_killed, left, killed, memory = False, [], 0, []
    while any(thread.is_alive() for thread in threads):
        time.sleep(1)
        memory.append((len(answers), service.memory_mib()))
        if len(answers) >= options.kill_workers * (killed + 1) and (workers := service.workers()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(random.choice(workers), 9)
            killed += 1
        if not is_killed and len(answers) >= options.kill_at * len(asked):
            started_by_it = service.descendants()
            service.process.kill()
            service.process.wait()
            time.sleep(2)
            for pid in started_by_it:
                with contextlib.suppress(OSError):
                    if Path(f"/proc/{pid}/stat").read_bytes().rsplit(b")", 1)[1].split()[0] != b"Z":
                        left.append(pid)
            print(f"killed at {len(answers)} answered; of its {len(started_by_it)} processes {len(left)} are there after 2 s", flush=True)
            service, is_killed = Service(options.out, port, options.jobs), True
    seconds = time.monotonic() - started
    if hostile:
        hostile.end()
    changed += [number for number, one in answers.items() if client.look(keys[number]) != one]
    service.process.terminate()
    service.process.wait()
    mixed = [number for number, (_, _, (outcome, word)) in enumerate(asked)
             if (one := answers.get(number)) is None or outcome and one["outcome"] != outcome or word not in one["message"]
             or outcome is None and one["outcome"] not in ("wrong", "binding", "call", "refused")]
    unlike = collections.defaultdict(set)
    for number, one in answers.items():
        if not asked[number][2][1]:
            unlike[asked[number][0], asked[number][1]["program"]].add((one["outcome"], one["reason"]))
    unlike = {key[0]: sorted(found) for key, found in unlike.items() if len(found) > 1}
    warm = [size for done, size in memory if done >= min(100, len(asked) // 4)] or [0]
    print(f"{len(answers)} of {len(asked)} answered in {seconds:.0f} s, {len(set(keys.values()))} ids; {killed} workers killed")
    print(f"answers that changed: {len(changed)}; of another submission, or with another outcome than they should have: {len(mixed)}; "
          f"programs with more than one outcome: {unlike or 'none'}")
    for number in mixed[:5]:
        print(f"  {asked[number][0]} {asked[number][2]}: {str(answers.get(number))[:500]}")
    print(f"outcomes: {dict(collections.Counter(one['outcome'] for one in answers.values()))}")
    print(f"memory of the service: {min(warm):.0f} to {max(warm):.0f} MiB; at most {max(size for _, size in memory):.0f}")
    if hostile:
        print(f"hostile rounds: {dict(hostile.done)}; answers that they should not have had: {hostile.wrong[:10] or 'none'}")
    is_right = (len(answers) == len(set(keys.values())) == len(asked) and is_killed and not left and not changed and not mixed
                and not unlike and max(warm) - min(warm) < GROWTH_MIB and not (hostile and hostile.wrong))
    print("all is as it should be" if is_right else "NOT as it should be")
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
