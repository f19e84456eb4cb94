# check: M=1, N=1
# check: M=13, N=127
# check: M=0, N=4
# input: x = normal(0, 4)
def softmax(x):
    return torch.softmax(x, 1)
