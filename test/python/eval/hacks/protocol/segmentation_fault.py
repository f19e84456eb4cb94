# told: crashed
# by: its process ended


class ModelNew(Scale):
    def forward(self, x):
        import ctypes
        ctypes.string_at(0)
