# check: ...=(1,)
# check: ...=(7, 131)
# check: ...=(3, 5), T=f16
# check: ...=(3, 5), T=bf16
# check: ...=(0, 5)
# bench: ...=(2048, 1024)
# input: x = normal(0, 3)
def gelu_fast(x):
    return torch.gelu(x, approximate="tanh")
