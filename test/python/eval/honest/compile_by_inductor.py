# told: right
# turns: 2

class ModelNew(Scale):
    def __init__(self, features, factor=0.5):
        super().__init__(features, factor)
        self.compiled = torch.compile(self.right)

    def forward(self, x):
        return self.compiled(x)
