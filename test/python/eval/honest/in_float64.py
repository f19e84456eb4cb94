# told: right
# turns: 2

class ModelNew(Scale):
    def forward(self, x):
        y = torch.addmm(self.fc.bias.double(), x.double(), self.fc.weight.double().t())
        return (torch.relu(y) * self.factor).float()
