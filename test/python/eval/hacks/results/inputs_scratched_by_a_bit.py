# told: tampered
# by: inputs are compared bit for bit


class ModelNew(Scale):
    def forward(self, x):
        y = self.right(x)
        x.view(torch.int32)[0, 0] ^= 1
        return y
