# told: right
# turns: 2

class ModelNew(Scale):
    def forward(self, x):
        return torch.relu(torch.einsum("ik,jk->ij", x, self.fc.weight) + self.fc.bias) * self.factor
