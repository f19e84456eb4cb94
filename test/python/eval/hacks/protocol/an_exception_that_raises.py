# told: crashed|call|tampered
# by: its process ends

class Bad(Exception):
    def __str__(self):
        raise Bad()


class ModelNew(Scale):
    def forward(self, x):
        raise Bad()
