# told: right
# by: places of its own, gone afterwards
# twice: yes
# cases: dev_shm tmp var_tmp

import os
LEFT = {"dev_shm": "/dev/shm", "tmp": "/tmp", "var_tmp": "/var/tmp"}[CASE] + f"/tegula-left-{CASE}"
if os.path.exists(LEFT):
    reached.append("what another one left")
else:
    try:
        open(LEFT, "w").close()
    except OSError:
        pass
if reached:
    raise RuntimeError(f"reached {reached}")


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
