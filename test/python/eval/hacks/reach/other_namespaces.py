# told: right
# by: the filter of calls

import os
tries(lambda: call("unshare", 0x10000000))
tries(lambda: call("setns", 0, 0))
tries(lambda: call("clone", 0x10000000 | 17, 0, 0, 0, 0))
if reached:
    raise RuntimeError(f"reached {reached}")


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
