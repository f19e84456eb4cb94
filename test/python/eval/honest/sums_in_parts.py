# told: right
# turns: 2

class ModelNew(Scale):
    def forward(self, x):
        parts = [a @ b.t() for a, b in zip(x.split(7, 1), self.fc.weight.split(7, 1))]
        return torch.relu(sum(parts[1:], parts[0]) + self.fc.bias) * self.factor
