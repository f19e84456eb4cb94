import torch
import torch.nn as nn


class Model(nn.Module):
    """Policy loss on tokens of sampled answers: log probabilities from logits at a temperature, a clipped ratio against
    the sampling policy, an estimate of the divergence from a reference, a mean over each answer's own tokens."""

    def __init__(self, temperature, clip, beta):
        super().__init__()
        self.temperature = temperature
        self.clip = clip
        self.beta = beta

    def forward(self, logits, tokens, old_logp, ref_logp, advantages, lengths):
        # logits (B, T, V), tokens, old_logp, ref_logp (B, T), advantages, lengths (B,)
        T = logits.shape[1]
        scaled = logits / self.temperature
        logp = scaled.gather(2, tokens[..., None]).squeeze(2) - torch.logsumexp(scaled, dim=-1)
        ratio = torch.exp((logp - old_logp).clamp(-5, 5))
        a = advantages[:, None]
        policy = -torch.minimum(ratio * a, ratio.clamp(1 - self.clip, 1 + self.clip) * a)
        off = (ref_logp - logp).clamp(-5, 5)
        kl = torch.exp(off) - off - 1
        mask = torch.arange(T, device=logits.device)[None, :] < lengths[:, None]
        per_token = torch.where(mask, policy + self.beta * kl, torch.zeros_like(policy))
        return (per_token.sum(dim=1) / lengths).mean(), logp


batch_size = 8
seq_len = 256
vocabulary = 8000


def get_inputs():
    return [
        torch.randn(batch_size, seq_len, vocabulary),
        torch.randint(0, vocabulary, (batch_size, seq_len)),
        torch.randn(batch_size, seq_len) - 9.5,
        torch.randn(batch_size, seq_len) - 9.5,
        torch.randn(batch_size),
        torch.randint(1, seq_len + 1, (batch_size,)),
    ]


def get_init_inputs():
    return [0.9, 0.2, 0.04]
