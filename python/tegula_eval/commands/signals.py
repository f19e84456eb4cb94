"""What signals do while a command runs."""
from __future__ import annotations

import contextlib
import signal
import threading


@contextlib.contextmanager
def handled(numbers: list[int], handler):
    """The first of these signals calls the handler; the next ones, and those after the block, do what they did before. On another
    thread than the main one, which gets no signals, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def once(number, frame):
        restore()
        handler(number, frame)

    def restore():
        for number, one in before.items():
            signal.signal(number, one)
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        signal.signal(number, once)
    try:
        yield
    finally:
        restore()
