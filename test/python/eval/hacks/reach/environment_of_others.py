# told: right
# by: namespaces, the filter of calls

for pid in others():
    tries(lambda: open(f"/proc/{pid}/environ", "rb").read(1))
if reached:
    raise RuntimeError(f"reached {reached}")


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
