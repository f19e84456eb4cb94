# told: wrong
# by: their number


class ModelNew(Scale):
    def forward(self, x):
        return [self.right(x)]*5000
