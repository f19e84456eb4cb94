# told: wrong
# by: not-finite


class ModelNew(Scale):
    def forward(self, x):
        return torch.full((len(x), 2*x.shape[1]), float("nan"))
