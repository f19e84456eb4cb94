# told: wrong
# by: their number


class ModelNew(Scale):
    def forward(self, x):
        return None
