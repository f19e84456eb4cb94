import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """CTC loss by the forward algorithm in the log domain. All targets have one length; the blank is class 0."""

    def __init__(self, blank):
        super().__init__()
        self.blank = blank

    def forward(self, logits, targets):
        # logits: (T, B, C), targets: (B, L)
        T, B, _ = logits.shape
        L = targets.shape[1]
        log_probs = F.log_softmax(logits, dim=-1)

        labels = torch.full((B, 2 * L + 1), self.blank, dtype=targets.dtype, device=targets.device)
        labels[:, 1::2] = targets
        emit = log_probs.gather(2, labels.unsqueeze(0).expand(T, -1, -1))  # (T, B, 2L + 1)
        may_skip = F.pad((labels[:, 2:] != self.blank) & (labels[:, 2:] != labels[:, :-2]), (2, 0), value=False)

        neg_inf = float("-inf")
        alpha = torch.full_like(emit[0], neg_inf)
        alpha[:, :2] = emit[0, :, :2]
        for t in range(1, T):
            stay = alpha
            step = F.pad(alpha[:, :-1], (1, 0), value=neg_inf)
            skip = F.pad(alpha[:, :-2], (2, 0), value=neg_inf).masked_fill(~may_skip, neg_inf)
            alpha = torch.logsumexp(torch.stack([stay, step, skip]), dim=0) + emit[t]
        loss = -torch.logaddexp(alpha[:, -1], alpha[:, -2])
        return (loss / L).mean(), loss


batch_size = 4
num_classes = 20
target_len = 7
extra_frames = 12


def get_inputs():
    return [
        torch.randn(2 * target_len + extra_frames, batch_size, num_classes),
        torch.randint(1, num_classes, (batch_size, target_len)),
    ]


def get_init_inputs():
    return [0]
