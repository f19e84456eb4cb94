"""Forks while other threads are at work, and Ctrl-C."""
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import tegula

PACKAGE = str(pathlib.Path(tegula.__file__).parents[1])
SCALE = "kernel scale(x: f32[M, N], s: f32) -> (y: f32[M, N]) { y[i, j] = s * x[i, j] }"


def script(text, *arguments, seconds=120, **environment):
    """Its exit status and what it printed; in a process of its own, where it may hang."""
    code = f"import sys; sys.path.insert(0, {PACKAGE!r})\nimport numpy as np, os, signal, tegula, threading, time\nSCALE = {SCALE!r}\n" + \
        textwrap.dedent(text)
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env={**os.environ, **environment}, start_new_session=True)
    try:
        out, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, _ = process.communicate()
        raise AssertionError(f"it hangs: {out}") from None
    return process.returncode, out


CHILDREN = """
def children(count, work):
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            work()
            sys.exit(0)  # with all destructors
        end = time.monotonic() + 30
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                assert status == 0, status
                break
            assert time.monotonic() < end, "a child hangs"
            time.sleep(0.01)
"""


@pytest.mark.parametrize("threads", ["2", "16"])
@pytest.mark.parametrize("at_work", [False, True])
def test_fork_while_another_thread_launches(threads, at_work):
    status, out = script(CHILDREN + f"""
k = tegula.compile(SCALE)
x = np.ones((1000, 1000), np.float32)
assert (k(x, 2.0) == 2).all()
if {at_work}:
    def launch():
        while True:
            k(x, 2.0)
    threading.Thread(target=launch, daemon=True).start()
    time.sleep(0.2)
def work():
    for s in range(5):
        assert (k(x, float(s)) == s).all()
    other = tegula.compile(SCALE.replace("s * x", "s + x"))
    assert (other(x, 2.0) == 3).all()
children(8, work)
assert (k(x, 3.0) == 3).all()
os._exit(0)
""", TEGULA_NUM_THREADS=threads)
    assert status == 0, out


def test_fork_while_another_thread_compiles_the_same_kernel():
    """At any moment of its compilation: in the parser, the passes, LLVM."""
    status, out = script(CHILDREN + """
for number in range(20):
    k = tegula.compile(SCALE.replace("s * x", "s * x[i, j] + " + " + ".join(f"sin(x[i, j] * {n}.0)" for n in range(20 + number)) + " + 0.0 * x"))
    x = np.zeros((30, 40), np.float32)
    threading.Thread(target=lambda: k(x, 2.0), daemon=True).start()
    time.sleep(0.004 * number)
    def work():
        assert (k(x, 2.0) == 0).all()
    children(1, work)
os._exit(0)
""")
    assert status == 0, out


INTERRUPTED = """
def interrupt(after):
    def send():
        time.sleep(after)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=send, daemon=True).start()
"""


@pytest.mark.parametrize("threads", ["1", "2", "4"])
@pytest.mark.parametrize("program", [
    "kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = sum(sin(x[i] * j) for j in 100000) }",
    "kernel k(x: f32[N]) -> (y: f32[N]) { t[i] = sum(sin(x[i] * j) for j in 100000)\n y[i] = t[i] + t[N - 1 - i] }"])
def test_interrupt_of_a_kernel(threads, program):
    """KeyboardInterrupt, and the process goes on."""
    status, out = script(INTERRUPTED + f"""
k = tegula.compile({program!r})
k(np.zeros(1, np.float32))
for _ in range(3):
    interrupt(0.3)
    started = time.monotonic()
    try:
        k(np.zeros(10**7, np.float32))
    except KeyboardInterrupt:
        assert time.monotonic() - started < 20  # of some hours
    else:
        raise AssertionError("it was not interrupted")
assert (k(np.zeros(3, np.float32)) == 0).all()
""", TEGULA_NUM_THREADS=threads)
    assert status == 0, out


def test_interrupt_of_what_cannot_be_stopped():
    """One point that takes hours: the process ends by SIGINT, and says why."""
    status, out = script(INTERRUPTED + """
k = tegula.compile("kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = sum(sin(x[i] * j) for j in 100000000000) }")
k(np.zeros(0, np.float32))  # compiles it
interrupt(0.5)
k(np.zeros(1, np.float32))
""")
    assert status == -signal.SIGINT and "cannot be interrupted" in out, (status, out)


def test_a_handler_of_the_programs_own():
    """Is called once the kernel is done, which nothing stops."""
    status, out = script(INTERRUPTED + """
k = tegula.compile("kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = sum(sin(x[i] * j) for j in 100000) }")
k(np.zeros(1, np.float32))
came = []
signal.signal(signal.SIGINT, lambda *_: came.append(1))
interrupt(0.1)
x = np.zeros(4000, np.float32)
assert (k(x) == 0).all()
while not came: k(x)
signal.signal(signal.SIGINT, signal.default_int_handler)
interrupt(0.3)
try:
    k(np.zeros(10**7, np.float32))
except KeyboardInterrupt:
    print("interrupted")
""")
    assert status == 0 and "interrupted" in out, out


def test_interrupt_between_calls_and_on_other_threads():
    status, out = script(INTERRUPTED + """
k = tegula.compile("kernel k(x: f32[N]) -> (y: f32[N]) { y[i] = sum(sin(x[i] * j) for j in 1000) }")
results = []
thread = threading.Thread(target=lambda: results.append(k(np.zeros(200000, np.float32))))
thread.start()
interrupt(0.2)
try:
    while True: time.sleep(0.01)
except KeyboardInterrupt:
    pass
thread.join()
assert (results[0] == 0).all()  # its launch is another thread's
assert (k(np.zeros(30, np.float32)) == 0).all()
""")
    assert status == 0, out
