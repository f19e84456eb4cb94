# told: refused|memory
# by: a limit on memory
# memory: 1073741824

HELD = bytearray(b"x")*(2 << 30)


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
