# told: right
# by: the filter of calls

import ctypes
tries(lambda: call("open_by_handle_at", -100, ctypes.create_string_buffer(128), 0))
if reached:
    raise RuntimeError(f"reached {reached}")


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
