# told: call
# by: failing is its own loss


class ModelNew(Scale):
    def forward(self, x):
        say({'is': 'failed', 'message': 'no'})
        import time
        time.sleep(5)
