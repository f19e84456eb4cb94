# told: wrong
# by: all five distributions


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x.clamp(-20, 20))
