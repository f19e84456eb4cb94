"""What a candidate's process may do, by whatever confines it: all that this system has, and less (TEGULA_EVAL_WITHOUT)."""
import os
import signal
import subprocess
import sys
import time

import pytest
from corpus import alive
from test_candidates import forward, judged

from tegula_eval.confine import cgroup, landlock, processes, seccomp
from tegula_eval.confine.starter import Starter
from tegula_eval.judge import candidates

RIGHT = "return self.right(x)"
LAYERS = {"all": "", "no group": "group", "no namespaces": "namespaces", "no other user": "namespaces,user,group",
          "filter alone": "namespaces,user,group,landlock", "groups of processes alone": "namespaces,user,landlock,calls"}


@pytest.fixture(scope="module", params=LAYERS)
def layers(request):
    """Their name; candidates are started so."""
    if os.path.exists("/dev/shm/tegula-left"):  # where nothing holds files an earlier test has left it
        os.unlink("/dev/shm/tegula-left")
    starter = Starter(LAYERS[request.param])
    old, candidates.starter = candidates.starter, lambda: starter
    yield request.param
    candidates.starter = old
    starter.stop()


def test_the_record_tells(layers):
    record = judged(forward(RIGHT))
    assert record["outcome"] == "right", record
    told, without = record["isolation"], LAYERS[layers].split(",")
    assert told["landlock"] == (0 if "landlock" in without else landlock.version())
    assert told["calls"] == ("calls" not in without and os.uname().machine in seccomp.ARCHITECTURES)
    for layer in ("namespaces", "group"):
        assert (told[layer] == "left out") == (layer in without), told
    print(layers, told)


def helper(before_it_stays: str) -> str:
    """A process that stays, by two forks, in a session of its own."""
    return forward(RIGHT, f'''
import ctypes, os, threading, time
libc = ctypes.CDLL(None)
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        libc.prctl(15, b"tegstay\\xff\\xfe", 0, 0, 0)
        def stay():
            os.write(write, b"x")
            while True:
                time.sleep(0.01)
        {before_it_stays}
        stay()
    os._exit(0)
os.read(read, 1)
''')


@pytest.mark.parametrize("kind, first", [("plain", "pass"), ("a name that is no text", "libc.prctl(15, b'tegstay\\xff', 0, 0, 0)"),
                                         ("no first thread", "threading.Thread(target=stay).start(); libc.syscall(60, 0)")])
def test_processes_that_stay_are_ended(layers, kind, first):
    if kind == "no first thread" and os.uname().machine != "x86_64":
        first = first.replace("60", "93")
    record = judged(helper(first), turns=1)
    assert record["outcome"] == "right", record
    assert not alive(b"tegstay")


def test_what_stays_is_stopped_between_calls(layers):
    """A helper that counts for as long as it runs: while the module is called, and results are compared, it does not."""
    record = judged(helper("""
        import mmap, struct
        def stay(step=1e-3):
            os.write(write, b"x")
            while True:
                time.sleep(step)
    """.strip()), turns=2)
    assert record["outcome"] == "right", record


REACHES = '''
import ctypes, os, resource, signal, socket
libc = ctypes.CDLL(None, use_errno=True)
reached = []
def tries(what, function):
    try:
        function()
        reached.append(what)
    except (OSError, AttributeError, ValueError):
        pass
def call(*arguments):
    if libc.syscall(*arguments) < 0:
        raise OSError(ctypes.get_errno(), "")
JUDGE = {judge}
tries("limits", lambda: resource.prlimit(JUDGE, resource.RLIMIT_NOFILE, (3, 3)))
tries("affinity", lambda: os.sched_setaffinity(JUDGE, {{0}}))
tries("scheduling", lambda: os.sched_setscheduler(JUDGE, os.SCHED_IDLE, os.sched_param(0)))
tries("priority", lambda: os.setpriority(os.PRIO_PROCESS, JUDGE, 19))
tries("trace", lambda: call({ptrace}, 0x4206, JUDGE, 0, 0))
tries("memory", lambda: open(f"/proc/{{JUDGE}}/mem", "rb"))
tries("environment", lambda: open(f"/proc/{{JUDGE}}/environ", "rb").read())
tries("descriptors", lambda: os.listdir(f"/proc/{{JUDGE}}/fd"))
tries("signal", lambda: os.kill(JUDGE, 0))
for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET, socket.AF_VSOCK):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
        tries(f"socket {{family}} {{kind}}", lambda: socket.socket(family, kind))
tries("datagrams", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
tries("memory that belongs to nobody", lambda: os.memfd_create("x"))
tries("namespaces", lambda: call({unshare}, 0x10000000))
for path in ({text!r}, "/etc/shadow", "/root/.ssh", "/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/fuse"):
    tries(path, lambda: open(path, "rb").close())
for path in ({text!r}, {text!r} + "2", "/dev/shm/tegula-left", "/usr/tegula-left"):
    tries("write " + path, lambda: open(path, "ab").close())
raise RuntimeError("reached: " + ", ".join(reached))
'''


@pytest.mark.skipif(os.uname().machine not in seccomp.ARCHITECTURES, reason="system calls have other numbers here")
def test_what_lies_outside(layers, tmp_path):
    if layers == "groups of processes alone":
        return  # no promise beyond that they are stopped and ended
    results = tmp_path / "results.jsonl"
    results.write_text("")
    results.chmod(0o666)
    tmp_path.chmod(0o777)
    column = seccomp.ARCHITECTURES[os.uname().machine][1]
    text = REACHES.format(judge=os.getpid(), text=str(results), ptrace=seccomp.OTHERS["ptrace"][column],
                          unshare=seccomp.PLACES["unshare"][column])
    record = judged(forward(RIGHT, text))
    assert (record["outcome"], record["reason"]) == ("refused", "load"), record
    reached = set(record["message"].partition("reached: ")[2].split(", ")) - {""}
    allowed = set()
    if layers in ("all", "no group") and record["isolation"]["namespaces"] == "own":
        allowed = {"write /dev/shm/tegula-left"}  # its own
    elif layers == "no namespaces":
        allowed = {"write /dev/shm/tegula-left"} if os.geteuid() == 0 else set()
    elif layers == "no other user":  # the numbers of a process's descriptors are files of its user
        allowed = {"descriptors"}
    elif layers == "filter alone":  # files are what it does not hold
        allowed = {one for one in reached if one.startswith(("write ", "/"))} | {"descriptors", "environment"}
    assert reached <= allowed, reached - allowed
    assert not os.path.exists("/dev/shm/tegula-left") or layers == "filter alone"
    assert layers == "filter alone" or results.read_text() == ""


def test_shared_memory_counts(layers):
    text = forward('''
import mmap
self.kept["held"] = mmap.mmap(-1, 1 << 30)
for place in range(0, 1 << 30, 4096):
    self.kept["held"][place] = 1
import time
time.sleep(1)
''' + RIGHT)
    record = judged(text, memory=700 << 20)
    assert record["outcome"] == "memory", record


def test_own_places_are_gone(layers):
    text = forward(RIGHT, '''
import os
left = [path for path in ("/dev/shm/tegula-left", "/tmp/tegula-left", "/var/tmp/tegula-left") if os.path.exists(path)]
for path in ("/dev/shm/tegula-left", "/tmp/tegula-left", "/var/tmp/tegula-left"):
    try:
        open(path, "w").close()
    except OSError:
        pass
if left:
    raise RuntimeError(f"{left} are there")
''')
    if layers in ("filter alone", "groups of processes alone"):
        return  # nothing holds files there
    for _ in range(2):
        record = judged(text)
        assert record["outcome"] == "right", record


def test_ordinary_user():
    """What root is promised, an ordinary user is: the judge runs as nobody."""
    if os.geteuid() != 0:
        return  # every test above is that one
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            os.environ["TMPDIR"] = "/tmp"
            import tempfile
            tempfile.tempdir = None
            starter = Starter()
            candidates.starter = lambda: starter
            record = judged(forward(RIGHT, '''
import os
if os.listdir("/proc") and any(name.isdigit() and int(name) > 50 for name in os.listdir("/proc")):
    raise RuntimeError("others are seen")
'''), turns=2)
            print(record, flush=True)
            code = 0 if record["outcome"] == "right" and record["isolation"]["namespaces"] == "own" else 1
            starter.stop()
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_own_folder_of_a_group():
    mounts = "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    assert str(cgroup.own_folder(mounts, "0::/user.slice/x.scope\n")) == "/sys/fs/cgroup/user.slice/x.scope"
    inside = "30 1 0:26 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup rw\n"
    assert str(cgroup.own_folder(inside, "0::/docker/1/a\n")) == "/sys/fs/cgroup/a"
    assert cgroup.own_folder("30 1 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n", "0::/\n") is None
    assert cgroup.own_folder(mounts, "4:memory:/\n") is None


def test_groups_that_a_killed_process_has_left():
    folder = cgroup.own_folder(open("/proc/self/mountinfo").read(), open("/proc/self/cgroup").read())
    with subprocess.Popen([sys.executable, "-c", "pass"]) as gone:
        pass
    left = folder and folder / f"tegula-{gone.pid}-0"
    try:
        left.mkdir()
    except (AttributeError, OSError):
        return  # no groups can be made here: the record says so (test_the_record_tells)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"]) as helper:
        (left / "cgroup.procs").write_text(str(helper.pid))
        (left / "cgroup.freeze").write_text("1")
        cgroup.sweep(folder)
        assert helper.wait(10) == -signal.SIGKILL
    assert not left.exists()


def test_names_that_are_bytes_and_leaders_that_ended():
    code = '''
import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None)
libc.prctl(15, b"\\xff) R 1 1", 0, 0, 0)
threading.Thread(target=lambda: [print("up", flush=True), time.sleep(60)]).start()
libc.syscall(60 if os.uname().machine == "x86_64" else 93, 0)
'''
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        time.sleep(0.2)
        assert processes.stat(child.pid).state == b"Z"
        assert child.pid in processes.descendants(os.getpid())
        assert child.pid in (processes.nearest(os.getpid()) or {child.pid})
        os.kill(child.pid, signal.SIGSTOP)
        for _ in range(100):
            if processes.is_still(child.pid):
                break
            time.sleep(0.02)
        assert processes.is_still(child.pid)
        os.kill(child.pid, signal.SIGKILL)
