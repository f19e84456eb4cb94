# told: right
# by: all but three are closed

import os, stat
for fd in range(3, 1024):
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        continue
    if stat.S_ISSOCK(mode) or stat.S_ISDIR(mode):
        reached.append(f"descriptor {fd}")
    elif stat.S_ISREG(mode) and not os.readlink(f"/proc/self/fd/{fd}").startswith("/memfd:inputs"):
        reached.append(os.readlink(f"/proc/self/fd/{fd}"))
if reached:
    raise RuntimeError(f"reached {reached}")


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
