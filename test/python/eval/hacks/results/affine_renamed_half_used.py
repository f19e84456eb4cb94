# told: wrong
# by: parameters are matched by what they were
# task: norm

class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(dim))
        self.shift = torch.nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        return torch.nn.functional.layer_norm(x, x.shape[1:], self.scale)
