# told: right
# by: a file system of its own

import glob, os
for path in glob.glob("/tmp/*/candidate.py") + glob.glob("/tmp/*/*/results.jsonl") + glob.glob("/tmp/*/run.json"):
    tries(lambda: open(path).read())
tries(lambda: open(SECRET).read())
if reached:
    raise RuntimeError(f"reached {reached}")


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
