# told: right
# turns: 2

class ModelNew(Scale):
    def forward(self, x):
        return torch.stack([self.right(row[None])[0] for row in x])
