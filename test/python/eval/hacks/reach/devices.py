# told: right
# by: a /dev of its own

import os
for name in ("mem", "kmsg", "fuse", "kvm", "vda", "loop0", "console", "tty0", "autofs", "net/tun", "ptmx"):
    tries(lambda: open("/dev/" + name, "rb"))
if reached:
    raise RuntimeError(f"reached {reached}")


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
