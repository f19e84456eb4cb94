# told: right
# by: a file system of its own

import os
for path in (TREE + "/bench/kernelbench/programs", TREE + "/bench", TREE + "/test", TREE + "/.git"):
    tries(lambda: os.listdir(path))
if reached:
    raise RuntimeError(f"reached {reached}")


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
