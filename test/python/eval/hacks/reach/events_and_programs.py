# told: right
# by: the filter of calls

import ctypes
room = ctypes.create_string_buffer(256)
tries(lambda: call("perf_event_open", room, 0, -1, -1, 0))
tries(lambda: call("bpf", 5, room, 128))
tries(lambda: call("userfaultfd", 0))
if reached:
    raise RuntimeError(f"reached {reached}")


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
