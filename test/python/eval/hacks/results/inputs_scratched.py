# told: tampered
# by: inputs are compared afterwards


class ModelNew(Scale):
    def forward(self, x):
        y = self.right(x)
        x[0, 0] += 1
        return y
