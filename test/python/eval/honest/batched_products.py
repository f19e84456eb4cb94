# told: right
# turns: 2

class ModelNew(Scale):
    def forward(self, x):
        y = torch.bmm(self.fc.weight.view(4, -1, x.shape[1]), x.t().expand(4, -1, -1)).reshape(-1, x.shape[0]).t()
        return torch.relu(y + self.fc.bias) * self.factor
