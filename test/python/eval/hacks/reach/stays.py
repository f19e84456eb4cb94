# told: right
# by: the end of its namespace, its group
# stays: tegstay
# cases: by_two_forks deaf_to_signals with_a_name_that_is_no_text without_its_first_thread

import ctypes, os, signal, threading, time
libc = ctypes.CDLL(None)
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        libc.prctl(15, b"tegstay\xff", 0, 0, 0)
        def stay():
            os.write(write, b"x")
            while True:
                time.sleep(0.01)
        if CASE == "deaf_to_signals":
            [signal.signal(one, signal.SIG_IGN) for one in range(1, 64) if one not in (9, 19, 32, 33)]
        elif CASE == "with_a_name_that_is_no_text":
            libc.prctl(15, b"tegstay\xff\xfe) Z 1", 0, 0, 0)
        elif CASE == "without_its_first_thread":
            threading.Thread(target=stay).start()
            libc.syscall(60 if os.uname().machine == "x86_64" else 93, 0)
        stay()
    os._exit(0)
os.read(read, 1)


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
