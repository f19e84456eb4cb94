# told: timeout
# by: the deadline
# deadline: 6


class ModelNew(Scale):
    def forward(self, x):
        while True:
            pass
