# told: right
# turns: 2

class ModelNew(Scale):
    def forward(self, x):
        return torch.relu(x.flip(1) @ self.fc.weight.flip(1).t() + self.fc.bias) * self.factor
