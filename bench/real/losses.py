"""Losses of language models over large vocabularies."""
import torch
import torch.nn.functional as F

from .suite import Case, f32, gradients, kernel, wide


@kernel(dict(M=4096, V=128256), dict(M=7, V=53), tolerance=3e-2, compiled=False)
def cross_entropy_grad(data, M, V):
    """The loss and the gradient of the logits."""
    def eager(x, y):
        x = x.detach().requires_grad_()
        with torch.enable_grad():
            loss = F.cross_entropy(wide(x), y)
            return loss.detach(), torch.autograd.grad(loss, x)[0]

    def liger():
        from liger_kernel.ops.cross_entropy import cross_entropy_forward
        x = tensors["x"].clone().requires_grad_()  # which the gradient overwrites: later calls take other logits
        return lambda: cross_entropy_forward(x, tensors["y"], None, -100, 0.0, 0.0, "mean", None, False)[:1]
    tensors = dict(x=data.normal(M, V), y=data.integers(0, V, M, dtype=torch.int64))
    return Case(tensors, eager, bytes=M*V*4, peers={"Liger (in place)": liger})


@kernel(dict(M=8192, V=128256, D=4096), dict(M=17, V=53, D=24))
def linear_cross_entropy(data, M, V, D):
    """Of logits that are a product: nothing of M x V has to be written."""
    def eager(h, w, y):
        return F.cross_entropy(wide(h @ w.t()), y)

    def liger():
        from liger_kernel.ops.fused_linear_cross_entropy import fused_linear_cross_entropy_forward
        return lambda: fused_linear_cross_entropy_forward(*(tensors[name] for name in "hwy"))[:1]
    tensors = dict(h=data.normal(M, D), w=data.normal(V, D, scale=0.02), y=data.integers(0, V, M, dtype=torch.int64))
    return Case(tensors, eager, bytes=(M + V)*D*2, operations=dict(bf16=2*M*V*D), peers={"Liger": liger})


@kernel(dict(B=16, T=512, V=32000), dict(B=4, T=5, V=53), tolerance=2e-2)
def dpo_loss(data, B, T, V):
    """Direct preference: log-probabilities of chosen and rejected answers beside a reference model's."""
    def eager(chosen, rejected, yc, yr, rc, rr):
        def log_probability(x, y):
            return torch.log_softmax(wide(x), -1).gather(2, y[..., None])[..., 0].sum(1)
        margin = (log_probability(chosen, yc) - rc) - (log_probability(rejected, yr) - rr)
        return -F.logsigmoid(0.1*margin).mean()
    tensors = dict(chosen=data.normal(B, T, V), rejected=data.normal(B, T, V),
                   yc=data.integers(0, V, B, T, dtype=torch.int64),
                   yr=data.integers(0, V, B, T, dtype=torch.int64), rc=data.floats(B), rr=data.floats(B))
    return Case(tensors, eager, bytes=2*B*T*V*2)


@kernel(dict(B=16, T=512, V=32000), dict(B=4, T=5, V=53), tolerance=2e-2)
def grpo_loss(data, B, T, V):
    """Group-relative policy optimisation: clipped ratios, advantages and a penalty by a reference model."""
    def eager(x, y, old, reference, advantage, mask):
        p = torch.log_softmax(wide(x), -1).gather(2, y[..., None])[..., 0]
        ratio = torch.exp(p - old)
        gain = torch.minimum(ratio*advantage[:, None], ratio.clamp(0.8, 1.2)*advantage[:, None])
        penalty = torch.exp(reference - p) - (reference - p) - 1
        return ((0.04*penalty - gain)*mask).sum()/mask.sum()
    y = data.integers(0, V, B, T, dtype=torch.int64)
    x = data.normal(B, T, V)
    p = torch.log_softmax(wide(x), -1).gather(2, y[..., None])[..., 0]
    tensors = dict(x=x, y=y, old=p + data.floats(B, T, scale=0.1), reference=p + data.floats(B, T, scale=0.1),
                   advantage=data.floats(B), mask=(data.uniform(B, T) < 0.8).to(f32))
    return Case(tensors, eager, bytes=B*T*V*2)


@kernel(dict(M=4096, V=32000), dict(M=7, V=53), tolerance=2e-2)
def jsd_distillation(data, M, V):
    """Jensen-Shannon divergence of a student's and a teacher's distributions."""
    def eager(student, teacher):
        p, q = (torch.log_softmax(wide(one), -1) for one in (student, teacher))
        middle = torch.logaddexp(p, q) - 0.6931471805599453
        return 0.5*((p.exp()*(p - middle)).sum(1) + (q.exp()*(q - middle)).sum(1)).mean()
    tensors = dict(student=data.normal(M, V), teacher=data.normal(M, V))
    return Case(tensors, eager, bytes=2*M*V*2)


@kernel(dict(M=4096, V=32000), dict(M=7, V=53), tolerance=2e-2, compiled=False)
def kl_distillation_grad(data, M, V):
    """The gradient of a temperature-scaled KL divergence to a teacher, with regard to the student's logits."""
    def eager(student, teacher):
        def loss(student):
            return F.kl_div(torch.log_softmax(wide(student)/2, -1), torch.log_softmax(wide(teacher)/2, -1), log_target=True,
                            reduction="batchmean")*4
        return gradients(loss, [student], None)[0]
    tensors = dict(student=data.normal(M, V), teacher=data.normal(M, V))
    return Case(tensors, eager, bytes=3*M*V*2)


@kernel(dict(M=8192, V=50304), dict(M=9, V=53), tolerance=2e-2)
def cross_entropy_smoothed(data, M, V):
    """Label smoothing, a penalty of the logsumexp, and labels that are ignored."""
    def eager(x, y):
        x = wide(x)
        lse, kept = torch.logsumexp(x, -1), y >= 0
        own = x.gather(1, y.clamp(min=0)[:, None])[:, 0]
        loss = lse - 0.9*own - 0.1*x.mean(-1) + 1e-4*lse.square()
        return torch.where(kept, loss, 0).sum()/kept.sum()
    y = data.integers(0, V, M, dtype=torch.int64)
    tensors = dict(x=data.normal(M, V), y=torch.where(data.uniform(M) < 0.1, -100, y))
    return Case(tensors, eager, bytes=M*V*2)
