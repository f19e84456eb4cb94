# told: wrong
# by: what lies in memory


class ModelNew(Scale):
    def forward(self, x):
        y = -self.right(x)
        return torch._neg_view(y).contiguous() * 0 + y
