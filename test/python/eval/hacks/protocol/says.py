# told: tampered
# by: its process may say three things
# cases: call crashed failed internal memory missing refused task timeout unjudged wrong


class ModelNew(Scale):
    def forward(self, x):
        say({'outcome': CASE, 'reason': 'random', 'message': '<script>alert(1)</script>'})
        return torch.zeros(len(x), 2*x.shape[1])
