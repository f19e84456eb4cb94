# told: right
# turns: 2

class ModelNew(Scale):
    def __init__(self, features, factor=0.5):
        super().__init__(features, factor)
        self.net = torch.nn.Sequential(self.fc, torch.nn.ReLU())

    def forward(self, x):
        return self.net(x) * self.factor
