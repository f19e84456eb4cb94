# told: wrong
# by: the rule for programs


class ModelNew(Scale):
    def forward(self, x):
        self.kept.setdefault(0, []).append(self.right(x))
        return torch.stack(self.kept[0]).mean(0)
