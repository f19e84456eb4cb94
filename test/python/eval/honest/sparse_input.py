# told: right
# turns: 2

class ModelNew(Scale):
    def forward(self, x):
        return torch.relu(torch.sparse.mm(x.to_sparse_csr(), self.fc.weight.t().contiguous()) + self.fc.bias) * self.factor
