# told: right
# by: processor time is shared among the threads that were given
# task: heavy
# turns: 7
# most: 1.5

torch.set_num_threads(8)


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x)
