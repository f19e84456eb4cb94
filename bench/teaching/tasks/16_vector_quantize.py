import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """
    VQ-VAE bottleneck: nearest codebook entry for each spatial position.
    Returns the (straight-through) quantised map, the indices and the loss.
    """

    def __init__(self, num_embeddings, embedding_dim, commitment_cost):
        super().__init__()
        self.embedding_dim = embedding_dim
        self.commitment_cost = commitment_cost
        self.codebook = nn.Embedding(num_embeddings, embedding_dim)

    def forward(self, z):
        # z: (B, D, H, W)
        B, D, H, W = z.shape
        z = z.permute(0, 2, 3, 1).contiguous()
        flat = z.view(-1, self.embedding_dim)

        distances = (
            flat.pow(2).sum(dim=1, keepdim=True)
            - 2.0 * flat @ self.codebook.weight.t()
            + self.codebook.weight.pow(2).sum(dim=1)
        )
        indices = torch.argmin(distances, dim=1)
        quantized = self.codebook(indices).view(z.shape)

        codebook_loss = F.mse_loss(quantized, z.detach())
        commitment_loss = F.mse_loss(z, quantized.detach())
        loss = codebook_loss + self.commitment_cost * commitment_loss

        quantized = z + (quantized - z).detach()
        quantized = quantized.permute(0, 3, 1, 2).contiguous()
        return quantized, indices.view(B, H, W), loss


batch_size = 4
embedding_dim = 32
height = 16
width = 16
num_embeddings = 256


def get_inputs():
    return [torch.randn(batch_size, embedding_dim, height, width)]


def get_init_inputs():
    return [num_embeddings, embedding_dim, 0.25]
