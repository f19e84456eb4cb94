# told: wrong
# by: the shape of the module's result


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)[None]
