# told: right
# by: places of its own, gone afterwards
# twice: yes

import os
if os.path.exists("/var/tmp/tegula-left-var_tmp"):
    reached.append("what another one left")
else:
    try:
        open("/var/tmp/tegula-left-var_tmp", "w").close()
    except OSError:
        pass
if reached:
    raise RuntimeError(f"reached {reached}")


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
