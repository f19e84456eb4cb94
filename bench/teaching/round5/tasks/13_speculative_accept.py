import torch
import torch.nn as nn


class Model(nn.Module):
    """
    Speculative decoding: a draft token is accepted if u < p(token) / q(token); all after the first rejection are
    rejected. Gives the number of accepted tokens and the distribution for the next one: max(p - q, 0), normalised,
    at the first rejection, or p behind the last token where all are accepted.
    """

    def __init__(self):
        super().__init__()

    def forward(self, target_probs, draft_probs, draft_tokens, uniform):
        # target_probs: (B, G + 1, V), draft_probs: (B, G, V), draft_tokens and uniform: (B, G)
        B, G, V = draft_probs.shape
        index = draft_tokens.unsqueeze(-1)
        p = target_probs[:, :G].gather(-1, index).squeeze(-1)
        q = draft_probs.gather(-1, index).squeeze(-1)
        accepted = (uniform < p / q).long()
        num_accepted = torch.cumprod(accepted, dim=1).sum(dim=1)

        padded = torch.cat([draft_probs, draft_probs.new_zeros(B, 1, V)], dim=1)
        at = num_accepted.view(B, 1, 1).expand(B, 1, V)
        residual = (target_probs.gather(1, at) - padded.gather(1, at)).squeeze(1).clamp(min=0.0)
        residual = residual / residual.sum(dim=-1, keepdim=True).clamp(min=1e-10)
        return num_accepted, residual


batch_size = 16
num_draft = 5
vocab_size = 200


def get_inputs():
    return [
        torch.softmax(torch.randn(batch_size, num_draft + 1, vocab_size), dim=-1),
        torch.softmax(torch.randn(batch_size, num_draft, vocab_size), dim=-1),
        torch.randint(0, vocab_size, (batch_size, num_draft)),
        torch.rand(batch_size, num_draft),
    ]


def get_init_inputs():
    return []
