# check: ...=(1,)
# check: ...=(7, 11, 3)
# bench: ...=(1024, 1024)
def mse(x, y):
    return torch.mse_loss(x, y)
