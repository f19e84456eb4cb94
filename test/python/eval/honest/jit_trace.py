# told: right
# turns: 2

def compute(x, weight, bias, factor):
    return torch.relu(torch.addmm(bias, x, weight.t())) * factor


class ModelNew(Scale):
    def forward(self, x):
        given = x, self.fc.weight, self.fc.bias, torch.tensor(self.factor)
        if x.shape not in self.kept:
            self.kept[x.shape] = torch.jit.trace(compute, given)
        return self.kept[x.shape](*given)
