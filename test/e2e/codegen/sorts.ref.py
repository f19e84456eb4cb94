# check: M=1, N=1
# check: M=3, N=700
# check: M=2, N=130, T=f16
# check: M=2, N=1300, T=i32
# check: M=2, N=600, T=f64
# check: M=2, N=600, T=i8
# exact
def sorts(x):
    a, p = torch.sort(x, stable=True, dim=1, descending=False)
    d, q = torch.sort(x, stable=True, dim=1, descending=True)
    return a, d, p

# check: M=600, N=5
# check: M=1, N=5
def ranks(x):
    d, q = torch.sort(x, stable=True, dim=0, descending=True)
    return q

# check: M=1, N=3
# check: M=4, N=400
# check: M=3, N=20, K=20
# check: M=3, N=1000, K=400, T=f64
# check: M=3, N=1000, T=bf16
def first(x, K: int):
    d, q = torch.sort(x, stable=True, dim=1, descending=True)
    return d[:, :K], q[:, :K], d[:, :K].float().sum(1)
