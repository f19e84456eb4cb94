# told: right
# turns: 2

class Apply(torch.autograd.Function):
    @staticmethod
    def forward(context, x, weight, bias, factor):
        return (x @ weight.t()).add_(bias).clamp_(min=0).mul_(factor)


class ModelNew(Scale):
    def forward(self, x):
        return Apply.apply(x, self.fc.weight, self.fc.bias, self.factor)
