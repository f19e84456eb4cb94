# told: call
# by: messages are printed without effect


class ModelNew(Scale):
    def forward(self, x):
        raise ValueError('\x1b[2J\x1b]0;owned\x07\r\u202e right')
