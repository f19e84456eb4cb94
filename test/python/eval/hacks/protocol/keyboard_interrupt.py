# told: refused
# by: every exception is one

raise KeyboardInterrupt


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
