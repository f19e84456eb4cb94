import torch
import torch.nn as nn


class Model(nn.Module):
    """Negative log likelihood of a linear-chain CRF over sequences of different lengths."""

    def __init__(self, num_tags):
        super().__init__()
        self.start_transitions = nn.Parameter(torch.empty(num_tags).uniform_(-0.5, 0.5))
        self.end_transitions = nn.Parameter(torch.empty(num_tags).uniform_(-0.5, 0.5))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags).uniform_(-0.5, 0.5))

    def _score(self, emissions, tags, mask, lengths):
        emit = emissions.gather(2, tags.unsqueeze(2)).squeeze(2)
        trans = self.transitions[tags[:, :-1], tags[:, 1:]]
        score = (emit * mask).sum(dim=1) + (trans * mask[:, 1:]).sum(dim=1)
        last_tags = tags.gather(1, (lengths - 1).unsqueeze(1)).squeeze(1)
        return score + self.start_transitions[tags[:, 0]] + self.end_transitions[last_tags]

    def _partition(self, emissions, mask):
        alpha = self.start_transitions + emissions[:, 0]
        for t in range(1, emissions.shape[1]):
            inner = alpha.unsqueeze(2) + self.transitions + emissions[:, t].unsqueeze(1)
            alpha = torch.where(mask[:, t].unsqueeze(1), torch.logsumexp(inner, dim=1), alpha)
        return torch.logsumexp(alpha + self.end_transitions, dim=1)

    def forward(self, emissions, tags, lengths):
        mask = torch.arange(emissions.shape[1], device=tags.device) < lengths.unsqueeze(1)
        nll = self._partition(emissions, mask) - self._score(emissions, tags, mask, lengths)
        return nll.sum() / lengths.sum()


batch_size = 6
seq_len = 18
num_tags = 9


def get_inputs():
    return [
        torch.randn(batch_size, seq_len, num_tags),
        torch.randint(0, num_tags, (batch_size, seq_len)),
        torch.randint(1, seq_len + 1, (batch_size,)),
    ]


def get_init_inputs():
    return [num_tags]
