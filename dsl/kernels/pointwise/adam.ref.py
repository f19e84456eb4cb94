# check: N=1, step=1
# check: N=1001, step=7
# bench: N=1000000, step=100
# input: v = uniform(0, 1)
def adam(p, m, v, g, step: float, lr: float, beta1: float, beta2: float, eps: float):
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g * g
    p = p - lr * (m / (1 - beta1 ** step)) / (torch.sqrt(v / (1 - beta2 ** step)) + eps)
    return p, m, v
