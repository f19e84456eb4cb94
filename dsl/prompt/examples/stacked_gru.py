import torch
import torch.nn as nn


class Model(nn.Module):
    """Two layers of GRU over a sequence, and a linear layer on the last step."""

    def __init__(self, features, hidden, classes):
        super().__init__()
        self.gru = nn.GRU(features, hidden, num_layers=2, batch_first=True)
        self.fc = nn.Linear(hidden, classes)

    def forward(self, x):
        y, h = self.gru(x)
        return self.fc(y[:, -1, :]), h


batch = 16
steps = 128
features = 64
hidden = 128
classes = 10


def get_inputs():
    return [torch.randn(batch, steps, features)]


def get_init_inputs():
    return [features, hidden, classes]
