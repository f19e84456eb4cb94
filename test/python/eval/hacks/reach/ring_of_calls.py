# told: right
# by: the filter of calls

import ctypes
tries(lambda: call("io_uring_setup", 4, ctypes.create_string_buffer(256)))
if reached:
    raise RuntimeError(f"reached {reached}")


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
