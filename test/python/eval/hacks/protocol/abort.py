# told: crashed
# by: its process ended


class ModelNew(Scale):
    def forward(self, x):
        import os
        os.abort()
