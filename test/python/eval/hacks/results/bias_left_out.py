# told: wrong
# by: float64


class ModelNew(Scale):
    def forward(self, x):
        return torch.relu(x @ self.fc.weight.t())*self.factor
