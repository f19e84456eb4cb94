# told: wrong
# by: booleans are compared
# task: above


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x <= 0.25
