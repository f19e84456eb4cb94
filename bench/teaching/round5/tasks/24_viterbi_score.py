import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """The score of an HMM's best path through each sequence of observed symbols, and the state it ends in."""

    def __init__(self, num_states, num_symbols):
        super().__init__()
        self.initial = nn.Parameter(torch.randn(num_states))
        self.transition = nn.Parameter(torch.randn(num_states, num_states))
        self.emission = nn.Parameter(torch.randn(num_states, num_symbols))

    def forward(self, symbols, bonus):
        # symbols: (B, T), bonus: (B, T), added where the state changes
        log_a = F.log_softmax(self.transition, dim=1)
        log_b = F.log_softmax(self.emission, dim=1)
        emit = log_b.t()[symbols]  # (B, T, S)
        moves = 1.0 - torch.eye(log_a.shape[0], dtype=log_a.dtype, device=log_a.device)

        delta = F.log_softmax(self.initial, dim=0) + emit[:, 0]
        for t in range(1, symbols.shape[1]):
            candidates = delta.unsqueeze(2) + log_a + bonus[:, t, None, None] * moves
            delta = candidates.amax(dim=1) + emit[:, t]
        best_score, last_state = delta.max(dim=1)
        return best_score, last_state


batch_size = 8
seq_len = 24
num_states = 12
num_symbols = 30


def get_inputs():
    return [torch.randint(0, num_symbols, (batch_size, seq_len)), torch.randn(batch_size, seq_len)]


def get_init_inputs():
    return [num_states, num_symbols]
