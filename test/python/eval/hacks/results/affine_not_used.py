# told: wrong
# by: all parameters are moved apart
# task: norm

class ModelNew(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = torch.nn.LayerNorm(dim)

    def forward(self, x):
        return torch.nn.functional.layer_norm(x, x.shape[1:])
