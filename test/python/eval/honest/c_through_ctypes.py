# told: right
# turns: 2

import ctypes
import os
import subprocess
import tempfile

SOURCE = """
void scale(const float *x, const float *w, const float *b, float *y, int rows, int features, int outputs, float factor) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < outputs; ++j) {
      float sum = b[j];
      for (int k = 0; k < features; ++k)
        sum += x[i * features + k] * w[j * features + k];
      y[i * outputs + j] = sum > 0 || sum != sum ? sum * factor : 0;
    }
}
"""
folder = tempfile.mkdtemp()
with open(f"{folder}/scale.c", "w") as file:
    file.write(SOURCE)
subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", f"{folder}/scale.so", f"{folder}/scale.c"], check=True)
library = ctypes.CDLL(f"{folder}/scale.so")


class ModelNew(Scale):
    def forward(self, x):
        y = torch.empty(x.shape[0], self.fc.out_features)
        library.scale(*(ctypes.c_void_p(one.data_ptr()) for one in (x, self.fc.weight, self.fc.bias, y)), x.shape[0],
                      x.shape[1], y.shape[1], ctypes.c_float(self.factor))
        return y
