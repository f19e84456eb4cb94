# More precise than it has to be.
def _to(one, old, new):
    return one.to(new) if isinstance(one, torch.Tensor) and one.dtype == old else one


class ModelNew(Model):
    def forward(self, *inputs):
        self.double()
        default = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            result = super().forward(*(_to(one, torch.float32, torch.float64) for one in inputs))
        finally:
            torch.set_default_dtype(default)
        if isinstance(result, (tuple, list)):
            return tuple(_to(one, torch.float64, default) for one in result)
        return _to(result, torch.float64, default)
