import torch
import torch.nn as nn


class Model(nn.Module):
    """Forward-backward algorithm of a hidden Markov model in the log domain: log likelihood and posteriors of states."""

    def __init__(self, states):
        super().__init__()
        self.transition = nn.Parameter(torch.randn(states, states))
        self.start = nn.Parameter(torch.randn(states))

    def forward(self, emission):
        # emission (B, T, S): log probabilities of what was seen
        a = self.transition.log_softmax(dim=1)
        T = emission.shape[1]
        alpha = [self.start.log_softmax(dim=0) + emission[:, 0]]
        for t in range(1, T):
            alpha.append(torch.logsumexp(alpha[-1][:, :, None] + a, dim=1) + emission[:, t])
        beta = [torch.zeros_like(emission[:, 0])]
        for t in range(T - 1, 0, -1):
            beta.append(torch.logsumexp(a + (beta[-1] + emission[:, t])[:, None, :], dim=2))
        alpha, beta = torch.stack(alpha, dim=1), torch.stack(beta[::-1], dim=1)
        return torch.logsumexp(alpha[:, -1], dim=-1), (alpha + beta).softmax(dim=-1)


batch_size = 256
steps = 64
states = 64


def get_inputs():
    return [torch.randn(batch_size, steps, states)]


def get_init_inputs():
    return [states]
