# check: M=1, N=1
# check: M=13, N=127
# check: M=2, N=0
# bench: M=2048, N=1024
# input: x = normal(0, 20)
def logsumexp(x):
    return torch.logsumexp(x, 1)
