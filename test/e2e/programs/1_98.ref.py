# check: B=1, N=1
# check: B=7, N=33
# input: predictions = uniform(0.01, 1)
# input: targets = uniform(0, 1)
def kl_div_loss(predictions, targets):
    return torch.kl_div(torch.log(predictions), targets, 0).sum() / predictions.size(0)
