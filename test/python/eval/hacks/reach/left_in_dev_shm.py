# told: right
# by: places of its own, gone afterwards
# twice: yes

import os
if os.path.exists("/dev/shm/tegula-left-dev_shm"):
    reached.append("what another one left")
else:
    try:
        open("/dev/shm/tegula-left-dev_shm", "w").close()
    except OSError:
        pass
if reached:
    raise RuntimeError(f"reached {reached}")


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
