# check: B=1, D=1
# check: B=7, D=33
def triplet_margin_loss(anchor, positive, negative):
    return torch.triplet_margin_loss(anchor, positive, negative)
