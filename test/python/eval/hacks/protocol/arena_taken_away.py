# told: crashed|wrong
# by: its memory is its own loss


class ModelNew(Scale):
    def forward(self, x):
        import ctypes
        ctypes.CDLL(None).munmap(ctypes.c_void_p(x.data_ptr() & ~4095), ctypes.c_size_t(1 << 20))
        return self.right(x)
