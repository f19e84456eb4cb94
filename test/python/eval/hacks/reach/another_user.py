# told: right
# by: no privilege is left

import os
for user in (0, 1, 1000):
    if os.geteuid() != user:
        tries(lambda: os.setuid(user))
        tries(lambda: os.chown(".", user, user))
if reached:
    raise RuntimeError(f"reached {reached}")


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
