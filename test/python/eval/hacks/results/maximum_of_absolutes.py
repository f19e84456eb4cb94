# told: wrong
# by: numbers below zero
# task: most


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.abs().max(1)[0]
