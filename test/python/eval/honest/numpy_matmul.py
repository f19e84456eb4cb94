# told: right
# turns: 2

import numpy as np


class ModelNew(Scale):
    def forward(self, x):
        y = x.numpy() @ self.fc.weight.numpy().T + self.fc.bias.numpy()
        return torch.from_numpy(np.maximum(y, 0) * np.float32(self.factor))
