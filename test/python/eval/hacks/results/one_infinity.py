# told: wrong
# by: not-finite


class ModelNew(Scale):
    def forward(self, x):
        y = self.right(x)
        y[-1, -1] = float("inf")
        return y
