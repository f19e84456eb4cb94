# told: wrong
# by: every element


class ModelNew(Scale):
    def forward(self, x):
        y = self.right(x)
        y[[0, 1]] = y[[1, 0]]
        return y
