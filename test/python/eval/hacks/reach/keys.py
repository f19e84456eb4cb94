# told: right
# by: the filter of calls

tries(lambda: call("keyctl", 0, -3, 0))
tries(lambda: call("add_key", b"user", b"x", b"y", 1, -3))
if reached:
    raise RuntimeError(f"reached {reached}")


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
