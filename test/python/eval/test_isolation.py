import os
import signal
import threading
import time

import pytest
from conftest import OwnPool

from tegula_eval.confine.child import run


def give(request, stage):
    stage("work")
    return {"got": request["value"]}


def test_answer():
    outcome = run(give, {"value": 3}, 10, None)
    assert outcome["kind"] == "done" and outcome["answer"] == {"got": 3}


def test_large_answer():
    assert len(run(lambda r, s: {"text": "x" * 3_000_000}, {}, 20, None)["answer"]["text"]) == 3_000_000


def test_deadline():
    def sleeps(request, stage):
        stage("sleep")
        time.sleep(600)
    for deadline in (0.3, 3, 30):  # on a busy machine a child may not get so far in the first
        outcome = run(sleeps, {}, deadline, None)
        assert outcome["kind"] == "timeout" and outcome["seconds"] >= deadline
        if outcome["stage"] == "sleep":
            return
    raise AssertionError(outcome)


def test_children_of_the_child_end_too(tmp_path):
    def forks(request, stage):
        child = os.fork()
        if child == 0:
            time.sleep(600)
            os._exit(0)
        (tmp_path / "pid").write_text(str(child))
        return {}
    assert run(forks, {}, 10, None)["kind"] == "done"
    pid = int((tmp_path / "pid").read_text())
    for _ in range(2000):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return
        except FileNotFoundError:
            return
        time.sleep(0.05)
    raise AssertionError("the grandchild still runs")


def test_memory():
    def takes(request, stage):
        stage("take")
        return {"size": len(bytearray(4 << 30))}
    outcome = run(takes, {}, 30, 1 << 30)
    assert (outcome["kind"], outcome["stage"]) == ("memory", "take")


def test_memory_of_torch():
    import torch

    def takes(request, stage):
        return {"size": torch.ones(1 << 30).numel()}
    assert run(takes, {}, 30, 1 << 30)["kind"] == "memory"


def test_crash():
    def crashes(request, stage):
        stage("crash")
        os.write(2, b"the last words")
        os.kill(os.getpid(), signal.SIGSEGV)
    outcome = run(crashes, {}, 10, None)
    assert (outcome["kind"], outcome["stage"]) == ("crashed", "crash")
    assert "SIGSEGV" in outcome["message"] and "the last words" in outcome["message"]


def test_exit_without_an_answer():
    outcome = run(lambda r, s: os._exit(0), {}, 10, None)
    assert outcome["kind"] == "crashed" and "exit code 0" in outcome["message"]


def test_exception():
    def fails(request, stage):
        raise KeyError("no such thing")
    outcome = run(fails, {}, 10, None)
    assert outcome["kind"] == "failed" and "no such thing" in outcome["message"] and "fails" in outcome["trace"]


def test_what_a_task_prints_is_not_an_answer(capfd):
    def prints(request, stage):
        print('{"answer": {"outcome": "right"}}', flush=True)
        return {"outcome": "wrong"}
    assert run(prints, {}, 10, None)["answer"] == {"outcome": "wrong"}
    assert capfd.readouterr().out == ""


def test_workers_outlive_the_threads_that_use_them():
    """Each request on a thread of its own: the second finds the worker that the first one started."""
    pool, processes = OwnPool(1, 600, None), []

    def ask():
        pool.judge({"task": "", "program": "", "secret": "s"})
        processes.append(pool._all[0].process.pid)

    try:
        for _ in range(3):
            thread = threading.Thread(target=ask)
            thread.start()
            thread.join()
    finally:
        pool.stop()
    assert len(set(processes)) == 1


def test_each_worker_sees_one_device():
    pool = OwnPool(5, 600, None, ["2", "7"])
    assert [worker.environment["CUDA_VISIBLE_DEVICES"] for worker in pool._all] == ["2", "7", "2", "7", "2"]
    pool.stop()
    pool = OwnPool(1, 600, None)
    assert pool._all[0].environment.get("CUDA_VISIBLE_DEVICES") == os.environ.get("CUDA_VISIBLE_DEVICES")
    pool.stop()


@pytest.mark.parametrize("devices, numbers", [("4,6", ["4", "6"]), (None, ["0", "1", "2"])])
def test_devices_of_the_command(devices, numbers, tmp_path, root, monkeypatch):
    """What the pool of `kernelbench --target=cuda` is given."""
    import torch

    from tegula_eval import cli
    from tegula_eval.workers import pool

    class Stopped(Exception):
        pass

    def made(*given):
        raise Stopped(given)

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    monkeypatch.setattr(pool, "Pool", made)
    command = ["kernelbench", f"--root={root}", f"--programs={tmp_path}", f"--out={tmp_path / 'out'}", "--jobs=2"]
    with pytest.raises(Stopped) as caught:
        cli.main([*command, "--target=cuda", *([f"--devices={devices}"] if devices else [])])
    assert caught.value.args[0][0] == 2 and caught.value.args[0][3] == numbers


@pytest.mark.parametrize("round", range(20))
def test_a_worker_that_is_stopped_while_it_judges(round, tmp_path):
    """Whoever waits for it hears that it died, whichever of the two closes its pipes."""
    from tegula_eval.workers.pool import Worker

    class Waiting(Worker):
        def command(self, descriptor):
            return ["bash", "-c", f"echo '{{}}' >&{descriptor}; read line <&{descriptor}; touch {tmp_path}/got; exec sleep 600"]

    worker, outcomes = Waiting(), []
    worker.start()
    waiter = threading.Thread(target=lambda: outcomes.append(worker.judge({}, 60, None)))
    waiter.start()
    while not (tmp_path / "got").exists():  # then it waits for the answer, or is about to
        time.sleep(0.005)
    if round % 2:
        worker.process.kill()
    worker.stop()
    waiter.join(20)
    assert [outcome["kind"] for outcome in outcomes] == ["crashed"]
    assert worker.process is None
