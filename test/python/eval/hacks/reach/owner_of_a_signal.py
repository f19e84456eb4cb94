# told: right
# by: the filter of calls

import fcntl, os
read, write = os.pipe()
for pid in others():
    tries(lambda: fcntl.fcntl(read, fcntl.F_SETOWN, pid))
if reached:
    raise RuntimeError(f"reached {reached}")


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
