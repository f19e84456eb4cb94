# Traced at the first call, and the trace run from then on.
class ModelNew(Model):
    trace = None

    def forward(self, *inputs):
        if self.trace is None:
            held = [self]  # not as a part of this module
            self.requires_grad_(False)
            self.trace = [torch.jit.trace(lambda *given: Model.forward(held[0], *given), inputs, check_trace=False)]
        return self.trace[0](*inputs)
