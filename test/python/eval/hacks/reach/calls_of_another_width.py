# told: right
# by: the filter of calls

import os
if os.uname().machine == "x86_64":
    tries(lambda: libc_call(0x40000000 | 41, 1, 1, 0))
if reached:
    raise RuntimeError(f"reached {reached}")


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
