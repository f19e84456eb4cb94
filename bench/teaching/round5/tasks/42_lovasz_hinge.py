import torch
import torch.nn as nn
import torch.nn.functional as F


def lovasz_grad(gt_sorted):
    """Gradient of the Lovasz extension of the Jaccard loss with respect to sorted errors, for each row."""
    gts = gt_sorted.sum(dim=1, keepdim=True)
    intersection = gts - gt_sorted.cumsum(dim=1)
    union = gts + (1.0 - gt_sorted).cumsum(dim=1)
    jaccard = 1.0 - intersection / union
    return torch.cat([jaccard[:, :1], jaccard[:, 1:] - jaccard[:, :-1]], dim=1)


class Model(nn.Module):
    """Binary Lovasz hinge loss of each image, and their mean."""

    def __init__(self):
        super().__init__()

    def forward(self, logits, labels):
        # (B, H, W), labels 0 or 1
        logits = logits.flatten(1)
        labels = labels.flatten(1).to(logits.dtype)
        signs = 2.0 * labels - 1.0
        errors = 1.0 - logits * signs
        errors_sorted, perm = torch.sort(errors, dim=1, descending=True)
        grad = lovasz_grad(labels.gather(1, perm))
        loss = (F.relu(errors_sorted) * grad).sum(dim=1)
        return loss.mean(), loss


batch_size = 5
height = 14
width = 18


def get_inputs():
    return [torch.randn(batch_size, height, width), torch.randint(0, 2, (batch_size, height, width))]


def get_init_inputs():
    return []
