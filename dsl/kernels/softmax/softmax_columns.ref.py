# check: B=1, M=1, N=1
# check: B=2, M=17, N=5
# check: B=3, M=64, N=33
# bench: B=16, M=256, N=256
def softmax_columns(x):
    return torch.softmax(x, 1)
