"""Steps of optimisers over all parameters."""
import torch

from .suite import Case, f32, kernel


@kernel(dict(N=1 << 27), dict(N=103), tolerance=1e-4)
def adamw(data, N):
    """Gradients in bf16, weights and moments in f32, in place."""
    def eager(p, g, m, v):
        g = g.to(m.dtype)
        m.lerp_(g, 0.1)
        v.mul_(0.999).addcmul_(g, g, value=0.001)
        p.mul_(1 - 1e-5).addcdiv_(m/(1 - 0.9**10), (v/(1 - 0.999**10)).sqrt() + 1e-8, value=-1e-3)
        return p, m, v
    tensors = dict(p=data.floats(N), g=data.normal(N), m=data.floats(N), v=data.uniform(N))
    return Case(tensors, eager, bytes=N*26)


@kernel(dict(N=1 << 27), dict(N=103), tolerance=1e-4)
def lion(data, N):
    """The sign of a mean of momentum and gradient."""
    def eager(p, g, m):
        g = g.to(m.dtype)
        p.mul_(1 - 1e-4).sub_(torch.sign(0.9*m + 0.1*g), alpha=1e-3)
        m.lerp_(g, 0.01)
        return p, m
    return Case(dict(p=data.floats(N), g=data.normal(N), m=data.floats(N)), eager, bytes=N*18)


@kernel(dict(N=1 << 27), dict(N=103), tolerance=1e-2)
def clip_by_norm(data, N):
    """Gradients scaled so that their norm is at most 1, in place."""
    def eager(g):
        norm = torch.linalg.vector_norm(g.to(torch.promote_types(f32, g.dtype)))
        g.copy_(g*torch.clamp(1/(norm + 1e-6), max=1.0))
        return norm, g
    return Case(dict(g=data.normal(N)), eager, bytes=N*6)


@kernel(dict(N=4096), dict(N=24), tolerance=3e-2)
def muon_newton_schulz(data, N):
    """One step of Muon's orthogonalisation."""
    def eager(x):
        a = x @ x.t()
        return 3.4445*x + (-4.775*a + 2.0315*a @ a) @ x
    return Case(dict(x=data.normal(N, N, scale=1/N)), eager, bytes=4*N*N, operations=dict(bf16=6*N**3))


@kernel(dict(M=16384, N=8192), dict(M=9, N=33), tolerance=1e-4)
def adafactor(data, M, N):
    """Second moments as sums of rows and of columns: one reading of the gradient for both, one for the step."""
    def eager(p, g, row, column):
        square = g.square() + 1e-30
        row.lerp_(square.mean(1), 0.1)
        column.lerp_(square.mean(0), 0.1)
        p.sub_(g*torch.rsqrt(row/row.mean())[:, None]*torch.rsqrt(column), alpha=1e-3)
        return p, row, column
    tensors = dict(p=data.floats(M, N), g=data.floats(M, N), row=data.uniform(M, low=0.5), column=data.uniform(N, low=0.5))
    return Case(tensors, eager, bytes=M*N*16)


@kernel(dict(N=1 << 27), dict(N=103), tolerance=1e-4)
def sgd_momentum(data, N):
    """Nesterov's momentum with weight decay, and a moving average of the weights, in place."""
    def eager(p, g, m, average):
        step = g + 1e-4*p
        m.mul_(0.9).add_(step)
        p.sub_(0.1*(step + 0.9*m))
        average.lerp_(p, 0.001)
        return p, m, average
    tensors = dict(p=data.floats(N), g=data.floats(N), m=data.floats(N), average=data.floats(N))
    return Case(tensors, eager, bytes=N*28)
