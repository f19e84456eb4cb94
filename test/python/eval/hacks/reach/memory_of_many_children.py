# told: memory
# by: memory of all its processes counts
# memory: 2147483648

import os, time
read, write = os.pipe()
for _ in range(4):
    if os.fork() == 0:
        held = bytearray(b"x")*(600 << 20)
        os.write(write, b"x")
        time.sleep(100)
        os._exit(0)
for _ in range(4):
    os.read(read, 1)
time.sleep(2)


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
