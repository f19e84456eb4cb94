# told: right
# by: namespaces, the filter of calls

import ctypes
place = (ctypes.c_size_t*2)(0x400000, 8)
for pid in others():
    tries(lambda: call("process_vm_readv", pid, place, 1, place, 1, 0))
    tries(lambda: open(f"/proc/{pid}/mem", "rb"))
if reached:
    raise RuntimeError(f"reached {reached}")


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
