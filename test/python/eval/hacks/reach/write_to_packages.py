# told: right
# by: a file system of its own

import os, sys
for path in [torch.__file__, os.__file__, sys.executable, sys.prefix + "/x", "/usr/x", "/etc/x", "/x", "/dev/x"]:
    tries(lambda: open(path, "ab"))
if reached:
    raise RuntimeError(f"reached {reached}")


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
