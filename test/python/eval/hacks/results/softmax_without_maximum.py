# told: wrong
# by: numbers 64 times as large
# task: softmax


class ModelNew(torch.nn.Module):
    def forward(self, x):
        e = x.exp()
        return e / e.sum(1, keepdim=True)
