#!/usr/bin/env python3
"""A thousand real submissions from many clients to `tegula-eval serve`, which is killed in the middle and started again.

Usage: eval_load.py --root=KERNELBENCH --out=FOLDER [--count=1000] [--tasks=25] [--clients=32] [--jobs=2] [--kill-at=0.4]

Each submission is a program of bench/kernelbench for one of so many tasks of levels 1 and 2, with a salt, so that all are
judged; every fourth program is the next task's, which is not right. When a share of KILL_AT is answered the service gets SIGKILL, its
clients go on asking until it is there again. Fails where a submission is lost, is answered twice with different
answers, or has another outcome than the same program in the other submissions of it. Tells the service's memory along the
way and the processes that a kill leaves.
"""
import argparse
import collections
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

TREE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TREE / "python"))

from tegula_eval.tasks import find_tasks  # noqa: E402

PROGRAMS = TREE / "bench" / "kernelbench" / "programs"


class Service:
    def __init__(self, folder: Path, port: int, jobs: int):
        self.port = port
        environment = {**os.environ, "TEGULA_EVAL_TOKEN": "token", "PYTHONPATH": str(TREE / "python")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tegula_eval", "serve", f"--port={port}", f"--jobs={jobs}", f"--out={folder}",
             "--bytes=1M", "--flops=1.6e7"], env=environment, stdout=subprocess.DEVNULL)

    def memory_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024

    def descendants(self) -> list[int]:
        """Its workers and all that they have started."""
        found, parents = [], [self.process.pid]
        while parents:
            told = subprocess.run(["ps", "-o", "pid=", "--ppid", ",".join(map(str, parents))], capture_output=True, text=True)
            parents = [int(pid) for pid in told.stdout.split() if Path(f"/proc/{pid}").exists()]
            found += parents
        return found


def ask(port: int, method: str, path: str, body=None):
    """Until there is a service that answers."""
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            connection.request(method, path, body and json.dumps(body),
                               {"Authorization": "Bearer token", "Content-Type": "application/json"})
            reply = connection.getresponse()
            data = json.loads(reply.read())
            if reply.status in (200, 202):
                return data
            if reply.status not in (429, 503):
                raise SystemExit(f"{method} {path}: {reply.status} {data}")
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        time.sleep(0.5)


def submissions(root: Path, count: int, most_tasks: int) -> list[tuple[str, dict]]:
    tasks = find_tasks(root, [1, 2])
    tasks = tasks[::max(1, len(tasks) // most_tasks)][:most_tasks]
    texts = [(PROGRAMS / f"level{task.level}" / f"{task.name}.tgl").read_text() for task in tasks]
    found = []
    for number in range(count):
        place = number % len(tasks)
        wrong = place % 4 == 3
        program = texts[(place + 1) % len(tasks)] if wrong else texts[place]
        found.append((tasks[place].key, {"task": tasks[place].source(), "program": program, "seeds": 1,
                                         "salt": str(number // len(tasks))}))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--tasks", type=int, default=25)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kill-at", type=float, default=0.4)
    options = parser.parse_args()
    asked = submissions(options.root, options.count, options.tasks)
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    service, started = Service(options.out, port, options.jobs), time.monotonic()
    keys: dict[int, str] = {}
    answers: dict[int, dict] = {}
    changed = 0

    def client(first: int) -> None:
        nonlocal changed
        for number in range(first, len(asked), options.clients):
            keys[number] = ask(port, "POST", "/v1/evaluations", asked[number][1])["id"]
        for number in range(first, len(asked), options.clients):
            while (told := ask(port, "GET", f"/v1/evaluations/{keys[number]}?wait=20"))["state"] != "done":
                pass
            answers[number] = told["reward"]
            # Sent once more it is the same submission, answered already.
            again = ask(port, "POST", "/v1/evaluations", asked[number][1])
            changed += again != {"id": keys[number], "state": "done"}

    threads = [threading.Thread(target=client, args=(one,), daemon=True) for one in range(options.clients)]
    for thread in threads:
        thread.start()
    killed = False
    memory = []
    while any(thread.is_alive() for thread in threads):
        time.sleep(5)
        done = ask(port, "GET", "/v1/health")["submissions"]["done"]
        memory.append((done, service.memory_mib()))
        if not killed and done >= options.kill_at * len(asked):
            workers = service.descendants()
            service.process.kill()
            service.process.wait()
            time.sleep(2)
            left = [pid for pid in workers if Path(f"/proc/{pid}/stat").exists()
                    and Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"]
            print(f"killed at {done} answered; of its {len(workers)} processes {len(left)} are there after 2 s", flush=True)
            service, killed = Service(options.out, port, options.jobs), True
    seconds = time.monotonic() - started
    counts = ask(port, "GET", "/v1/health")["submissions"]
    early = {number: one for number, one in answers.items()
             if ask(port, "GET", f"/v1/evaluations/{keys[number]}")["reward"] != one}
    service.process.terminate()
    outcomes = collections.defaultdict(set)
    for number, reward in answers.items():
        outcomes[number % options.tasks].add((reward["outcome"], reward["reason"]))
    unlike = {asked[place][0]: sorted(found) for place, found in outcomes.items() if len(found) > 1}
    print(f"{len(answers)} of {len(asked)} answered in {seconds:.0f} s, {len(set(keys.values()))} ids; the service has {counts}")
    print(f"answers that changed: {len(early) + changed}; programs with more than one outcome: {unlike or 'none'}")
    print(f"outcomes: {dict(collections.Counter(reward['outcome'] for reward in answers.values()))}")
    print("memory of the service, MiB: " + ", ".join(f"{size:.0f} at {done}" for done, size in memory[::max(1, len(memory) // 12)]))
    is_right = (len(answers) == len(set(keys.values())) == counts["done"] == len(asked) and killed
                and not early and not changed and not unlike)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
