# told: right
# by: the filter of calls

import socket
tries(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
if reached:
    raise RuntimeError(f"reached {reached}")


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
