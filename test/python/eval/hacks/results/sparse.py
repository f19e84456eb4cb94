# told: call|wrong
# by: what lies in memory


class ModelNew(Scale):
    def forward(self, x):
        return self.right(x).to_sparse()
