# check: B=1, M=1, N=1
# check: B=2, M=31, N=7
# bench: B=16, M=256, N=256
def argmax_columns(x):
    return torch.argmax(x, 1)
