# told: wrong
# by: all five distributions
# task: relu


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x
