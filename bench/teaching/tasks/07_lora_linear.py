import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Linear layer with a frozen base weight and a scaled low-rank update (LoRA)."""

    def __init__(self, in_features, out_features, rank, alpha):
        super().__init__()
        self.base = nn.Linear(in_features, out_features, bias=True)
        for p in self.base.parameters():
            p.requires_grad_(False)
        self.lora_A = nn.Parameter(torch.empty(rank, in_features))
        self.lora_B = nn.Parameter(torch.empty(out_features, rank))
        self.scaling = alpha / rank
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))
        # as after some training: B starts at zero and has moved away from it
        nn.init.normal_(self.lora_B, std=0.2)

    def forward(self, x):
        result = self.base(x)
        update = F.linear(F.linear(x, self.lora_A), self.lora_B)
        return result + self.scaling * update


batch_size = 8
seq_len = 128
in_features = 512
out_features = 768
rank = 8
alpha = 16


def get_inputs():
    return [torch.randn(batch_size, seq_len, in_features)]


def get_init_inputs():
    return [in_features, out_features, rank, alpha]
