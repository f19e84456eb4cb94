# told: right
# turns: 2

import numpy as np


class ModelNew(Scale):
    def forward(self, x):
        y = self.kept.setdefault(x.shape, np.empty((x.shape[0], self.fc.out_features), np.float32))
        np.matmul(x.numpy(), self.fc.weight.numpy().T, out=y)
        np.add(y, self.fc.bias.numpy(), out=y)
        np.maximum(y, 0, out=y)
        np.multiply(y, np.float32(self.factor), out=y)
        return torch.from_numpy(y)
