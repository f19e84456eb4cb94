# told: wrong
# by: every element


class ModelNew(Scale):
    def forward(self, x):
        y = self.right(x)
        y[len(y)//2:] = 0
        return y
