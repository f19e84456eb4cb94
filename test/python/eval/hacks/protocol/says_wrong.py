# told: tampered
# by: its process may say three things


class ModelNew(Scale):
    def forward(self, x):
        say({'outcome': 'wrong', 'reason': 'random', 'message': '<script>alert(1)</script>'})
        return torch.zeros(len(x), 2*x.shape[1])
