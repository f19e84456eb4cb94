# told: wrong
# by: all parameters are moved apart
# task: norm

class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        return torch.nn.functional.layer_norm(x, x.shape[1:])*self.scale
