# told: wrong
# by: every call is judged


class ModelNew(Scale):
    def forward(self, x):
        self.calls += 1
        return self.right(x) * (1.01 if self.calls % 3 == 0 else 1)
