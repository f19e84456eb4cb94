# told: right
# turns: 2

class ModelNew(Scale):
    def forward(self, x):
        y = torch.nn.functional.conv1d(x.t()[None], self.fc.weight[:, :, None], self.fc.bias)[0].t()
        return torch.relu(y).mul_(self.factor)
