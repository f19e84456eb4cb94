import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Multi-class focal loss plus soft dice loss on segmentation logits."""

    def __init__(self, num_classes, gamma=2.0, dice_weight=1.0, smooth=1.0):
        super().__init__()
        self.num_classes = num_classes
        self.gamma = gamma
        self.dice_weight = dice_weight
        self.smooth = smooth
        self.register_buffer("alpha", torch.linspace(0.25, 1.0, num_classes))

    def focal(self, logits, target):
        log_p = F.log_softmax(logits, dim=1)
        log_pt = log_p.gather(1, target.unsqueeze(1)).squeeze(1)
        pt = log_pt.exp()
        alpha_t = self.alpha[target]
        return (-alpha_t * (1.0 - pt) ** self.gamma * log_pt).mean()

    def dice(self, logits, target):
        probs = F.softmax(logits, dim=1)
        onehot = F.one_hot(target, self.num_classes).permute(0, 3, 1, 2).to(probs.dtype)
        inter = (probs * onehot).sum(dim=(2, 3))
        denom = probs.sum(dim=(2, 3)) + onehot.sum(dim=(2, 3))
        score = (2.0 * inter + self.smooth) / (denom + self.smooth)
        return 1.0 - score.mean()

    def forward(self, logits, target):
        return self.focal(logits, target) + self.dice_weight * self.dice(logits, target)


batch_size = 4
num_classes = 6
height = 128
width = 128


def get_inputs():
    logits = torch.randn(batch_size, num_classes, height, width)
    target = torch.randint(0, num_classes, (batch_size, height, width))
    return [logits, target]


def get_init_inputs():
    return [num_classes, 2.0, 0.5, 1.0]
