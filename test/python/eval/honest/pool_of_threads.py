# told: right
# turns: 2

import concurrent.futures


class ModelNew(Scale):
    def forward(self, x):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return torch.cat(list(pool.map(self.right, x.chunk(2))))
