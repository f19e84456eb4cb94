import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Token-level distillation: KL to the softened teacher plus cross entropy with labels, padded tokens (-100) left out."""

    def __init__(self, temperature, alpha, ignore_index):
        super().__init__()
        self.temperature = temperature
        self.alpha = alpha
        self.ignore_index = ignore_index

    def forward(self, student_logits, teacher_logits, labels):
        # (B, T, V), (B, T, V), (B, T)
        V = student_logits.size(-1)
        valid = labels.ne(self.ignore_index)

        log_q = F.log_softmax(student_logits / self.temperature, dim=-1)
        log_p = F.log_softmax(teacher_logits / self.temperature, dim=-1)
        kl = F.kl_div(log_q, log_p, reduction="none", log_target=True).sum(dim=-1)
        kl = kl.masked_fill(~valid, 0.0).sum() / valid.sum()

        ce = F.cross_entropy(student_logits.view(-1, V), labels.view(-1), ignore_index=self.ignore_index)
        loss = self.alpha * self.temperature ** 2 * kl + (1.0 - self.alpha) * ce
        return loss, kl, ce


batch_size = 4
seq_len = 20
vocab_size = 90


def get_inputs():
    labels = torch.randint(0, vocab_size, (batch_size, seq_len))
    lengths = torch.randint(1, seq_len + 1, (batch_size, 1))
    labels = torch.where(torch.arange(seq_len) < lengths, labels, -100)
    return [
        torch.randn(batch_size, seq_len, vocab_size),
        torch.randn(batch_size, seq_len, vocab_size),
        labels,
    ]


def get_init_inputs():
    return [2.0, 0.7, -100]
