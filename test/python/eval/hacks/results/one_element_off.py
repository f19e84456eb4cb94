# told: wrong
# by: the bound on the worst element


class ModelNew(Scale):
    def forward(self, x):
        y = self.right(x)
        place = int(y.flatten().argmax())
        y.view(-1)[place] *= 1.001
        return y
