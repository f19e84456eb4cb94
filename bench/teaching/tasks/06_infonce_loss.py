import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Symmetric InfoNCE (CLIP-style) loss between two batches of paired embeddings."""

    def __init__(self, temperature):
        super().__init__()
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1.0 / temperature)))

    def forward(self, image_features, text_features):
        image_features = F.normalize(image_features, p=2, dim=-1)
        text_features = F.normalize(text_features, p=2, dim=-1)
        scale = self.logit_scale.exp().clamp(max=100.0)
        logits_per_image = scale * image_features @ text_features.t()
        logits_per_text = logits_per_image.t()
        labels = torch.arange(image_features.shape[0], device=image_features.device)
        loss_i = F.cross_entropy(logits_per_image, labels)
        loss_t = F.cross_entropy(logits_per_text, labels)
        return 0.5 * (loss_i + loss_t)


batch_size = 512
embed_dim = 256


def get_inputs():
    return [torch.randn(batch_size, embed_dim), torch.randn(batch_size, embed_dim)]


def get_init_inputs():
    return [0.07]
