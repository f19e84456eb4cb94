# told: wrong
# by: numbers below zero
# task: most


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return torch.maximum(torch.zeros(()), x.max(1)[0])
