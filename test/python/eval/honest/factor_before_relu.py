# told: right
# turns: 2

class ModelNew(Scale):
    def forward(self, x):
        return torch.relu(torch.addmm(self.fc.bias, x, self.fc.weight.t(), beta=self.factor, alpha=self.factor))
