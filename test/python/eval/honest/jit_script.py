# told: right
# turns: 2

@torch.jit.script
def compute(x, weight, bias, factor: float):
    return torch.relu(torch.nn.functional.linear(x, weight, bias)) * factor


class ModelNew(Scale):
    def forward(self, x):
        return compute(x, self.fc.weight, self.fc.bias, self.factor)
