# check: M=1, N=1
# check: M=7, N=131
# check: M=2, N=0
# check: M=2, N=67, T=f64
# check: M=3, N=19, T=i64
# bench: M=1024, N=2048
def cumsum_rows(x):
    return torch.cumsum(x, 1)
