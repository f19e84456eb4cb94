# told: right
# turns: 2

class ModelNew(Scale):
    def forward(self, x):
        return torch.relu(self.fc.weight @ x.t() + self.fc.bias[:, None]).mul_(self.factor).t()
