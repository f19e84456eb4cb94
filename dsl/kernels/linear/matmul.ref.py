# check: M=1, K=1, N=1
# check: M=7, K=13, N=5
# check: M=33, K=257, N=65
# check: M=64, K=64, N=64, T=f64
# check: M=31, K=129, N=47, T=bf16
# check: M=32, K=100, N=17, T=f16
# check: M=0, K=3, N=4
# check: M=3, K=0, N=4
# bench: M=1024, K=1024, N=1024
def matmul(a, b):
    return torch.matmul(a, b)
