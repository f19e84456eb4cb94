# told: right
# turns: 2

import multiprocessing

given = {}


def part(begin, end):
    given["y"][begin:end] = given["model"].right(given["x"][begin:end])


class ModelNew(Scale):
    def forward(self, x):
        """Forked processes find what they need; a pool's pipes carry numbers alone."""
        given.update(model=self, x=x, y=torch.empty(x.shape[0], self.fc.out_features).share_memory_())
        with multiprocessing.get_context("fork").Pool(2) as pool:
            pool.starmap(part, [(0, 7), (7, x.shape[0])])
        return given["y"].clone()
