# told: right
# turns: 2

class ModelNew(Scale):
    def forward(self, x):
        return torch.func.vmap(lambda row: torch.relu(self.fc.weight @ row + self.fc.bias) * self.factor)(x)
