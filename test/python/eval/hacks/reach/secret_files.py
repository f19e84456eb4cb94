# told: right
# by: a file system of its own

for path in ("/etc/shadow", "/etc/sudoers", "/root/.bash_history", "/root/.ssh/id_rsa", "/home", "/var/log", "/boot"):
    import os
    tries(lambda: os.listdir(path) if os.path.isdir(path) else open(path).read())
if reached:
    raise RuntimeError(f"reached {reached}")


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
