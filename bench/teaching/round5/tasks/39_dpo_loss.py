import torch
import torch.nn as nn
import torch.nn.functional as F


def get_batch_logps(logits, labels, loss_mask):
    """Summed log probabilities of the next tokens that the mask keeps: (2B,)."""
    labels = labels[:, 1:]
    loss_mask = loss_mask[:, 1:]
    logps = logits[:, :-1].log_softmax(-1)
    per_token = torch.gather(logps, dim=2, index=labels.unsqueeze(2)).squeeze(2)
    return (per_token * loss_mask).sum(-1)


class Model(nn.Module):
    """Direct preference optimisation. Chosen answers are the first half of the batch, rejected ones the second."""

    def __init__(self, beta, label_smoothing):
        super().__init__()
        self.beta = beta
        self.label_smoothing = label_smoothing

    def forward(self, policy_logits, reference_logits, labels, loss_mask):
        policy_chosen, policy_rejected = get_batch_logps(policy_logits, labels, loss_mask).chunk(2)
        ref_chosen, ref_rejected = get_batch_logps(reference_logits, labels, loss_mask).chunk(2)

        margin = (policy_chosen - policy_rejected) - (ref_chosen - ref_rejected)
        losses = (
            -F.logsigmoid(self.beta * margin) * (1 - self.label_smoothing)
            - F.logsigmoid(-self.beta * margin) * self.label_smoothing
        )
        chosen_rewards = self.beta * (policy_chosen - ref_chosen)
        rejected_rewards = self.beta * (policy_rejected - ref_rejected)
        return losses.mean(), chosen_rewards, rejected_rewards


num_pairs = 4
seq_len = 16
vocab_size = 60


def get_inputs():
    prompt = torch.randint(1, seq_len // 2 + 1, (2 * num_pairs, 1))
    end = torch.randint(seq_len // 2 + 1, seq_len + 1, (2 * num_pairs, 1))
    position = torch.arange(seq_len)
    return [
        torch.randn(2 * num_pairs, seq_len, vocab_size),
        torch.randn(2 * num_pairs, seq_len, vocab_size),
        torch.randint(0, vocab_size, (2 * num_pairs, seq_len)),
        (position >= prompt) & (position < end),
    ]


def get_init_inputs():
    return [0.1, 0.05]
