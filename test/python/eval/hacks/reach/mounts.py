# told: right
# by: the filter of calls

tries(lambda: call("mount", b"tmpfs", b"/tmp", b"tmpfs", 0, None))
tries(lambda: call("chroot", b"/tmp"))
tries(lambda: call("open_tree", -100, b"/", 1))
if reached:
    raise RuntimeError(f"reached {reached}")


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
