# told: wrong
# by: the type of the module's result


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x).cfloat()
