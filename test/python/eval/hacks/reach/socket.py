# told: right
# by: the filter of calls
# cases: alg inet inet6 netlink packet unix vsock

import socket
family = getattr(socket, f"AF_{CASE.upper()}")
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
    tries(lambda: socket.socket(family, kind))
if reached:
    raise RuntimeError(f"reached {reached}")


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
