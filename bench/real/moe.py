"""Mixtures of experts: choosing, sorting, and the experts' layers."""
import torch
import torch.nn.functional as F

from .suite import Case, kernel, wide


def experts(data, T, E, J, D, H):
    def eager(x, w1, w3, w2, e, g):
        y = torch.zeros(T, D, device=x.device, dtype=wide(x).dtype)
        for expert in range(E):
            rows, place = (e == expert).nonzero(as_tuple=True)
            h = F.silu(x[rows] @ w1[expert].t())*(x[rows] @ w3[expert].t())
            y.index_add_(0, rows, wide(h @ w2[expert].t())*g[rows, place][:, None])
        return y.to(x.dtype)

    def grouped():
        def call():
            x, w1, w3, w2, e, g = tensors.values()
            order = e.flatten().argsort(stable=True)
            ends = torch.bincount(e.flatten(), minlength=E).cumsum(0).int()
            rows = x[order//J]
            h = F.silu(torch._grouped_mm(rows, w1.transpose(1, 2), offs=ends))*torch._grouped_mm(rows, w3.transpose(1, 2),
                                                                                                 offs=ends)
            o = torch._grouped_mm(h, w2.transpose(1, 2), offs=ends)
            return torch.zeros(T, D, device=x.device).index_add_(0, order//J,
                                                                 o.float()*g.flatten()[order][:, None]).bfloat16()
        return call
    tensors = dict(x=data.normal(T, D), w1=data.normal(E, H, D, scale=0.02), w3=data.normal(E, H, D, scale=0.02),
                   w2=data.normal(E, D, H, scale=0.02), e=data.distinct(E, T, J), g=data.uniform(T, J))
    return Case(tensors, eager, bytes=3*E*D*H*2 + T*D*4, operations=dict(bf16=6*T*J*D*H), peers={"grouped_mm": grouped})


@kernel(dict(T=4096, E=8, J=2, D=2048, H=4096), dict(T=9, E=3, J=2, D=24, H=40), tolerance=3e-2, compiled=False)
def moe_swiglu_top2(data, T, E, J, D, H):
    """Two of eight experts for each token, with SwiGLU."""
    return experts(data, T, E, J, D, H)


@kernel(dict(T=8192, E=128, J=8, D=2048, H=768), dict(T=9, E=12, J=8, D=24, H=16), tolerance=3e-2, compiled=False)
def moe_swiglu_top8(data, T, E, J, D, H):
    """Eight of 128 small experts for each token, with SwiGLU."""
    return experts(data, T, E, J, D, H)


@kernel(dict(T=64, E=128, J=8, D=2048, H=768), dict(T=3, E=12, J=8, D=24, H=16), tolerance=3e-2, compiled=False)
def moe_decode(data, T, E, J, D, H):
    """The same of 64 tokens: the experts' bytes are the time."""
    return experts(data, T, E, J, D, H)


@kernel(dict(T=16384, E=256, G=8, K=8), dict(T=9, E=32, G=4, K=3), tolerance=1e-5, mismatches=1e-3)
def moe_gate_grouped(data, T, E, G, K):
    """DeepSeek's gate: sigmoids with a bias, the best four groups by their two largest, the best eight experts of these."""
    groups = 4 if G > 4 else 2

    def eager(x, bias):
        score = torch.sigmoid(x)
        biased = (score + bias).view(T, G, E//G)
        best = biased.topk(2, -1).values.sum(-1).topk(groups, -1).indices
        seen = torch.zeros(T, G, device=x.device, dtype=torch.bool).scatter_(1, best, True)
        chosen = biased.masked_fill(~seen[..., None], float("-inf")).view(T, E).topk(K, -1).indices
        weight = score.gather(1, chosen)
        return weight/weight.sum(-1, keepdim=True)*2.5, chosen
    tensors = dict(x=data.floats(T, E), bias=data.floats(E, scale=0.1))
    return Case(tensors, eager, bytes=T*E*4 + T*K*12, constants={"G": str(G), "groups": str(groups), "K": str(K)})


@kernel(dict(T=8192, J=8, E=128, D=4096), dict(T=9, J=2, E=4, D=24), compiled=False)
def moe_permute(data, T, J, E, D):
    """Rows in the order of their experts, stable, the places of each, and how many each expert has."""
    def eager(x, e):
        order = e.flatten().argsort(stable=True)
        return x[order//J], order, torch.bincount(e.flatten(), minlength=E)
    return Case(dict(x=data.normal(T, D), e=data.distinct(E, T, J)), eager, bytes=T*D*2 + T*J*D*2, constants={"E": str(E)})


@kernel(dict(T=8192, J=8, D=4096), dict(T=9, J=2, D=24))
def moe_unpermute(data, T, J, D):
    """Weighted sums of each token's rows, which lie in the order of the experts."""
    def eager(y, place, g):
        return (wide(y)[place.long()]*g[..., None]).sum(1).to(y.dtype)
    tensors = dict(y=data.normal(T*J, D), place=data.permutation(T*J).view(T, J), g=data.uniform(T, J))
    return Case(tensors, eager, bytes=T*J*D*2 + T*D*2)


@kernel(dict(M=32768, E=8, N=4096, K=2048), dict(M=40, E=4, N=20, K=24), tolerance=2e-2, compiled=False)
def grouped_mm_ends(data, M, E, N, K):
    """Rows in the order of their experts, which the places where each expert's rows end give."""
    ends = torch.bincount(data.integers(0, E, M), minlength=E).cumsum(0).int()

    def eager(x, w, ends):
        starts = [0, *ends.tolist()]
        return torch.cat([x[a:b] @ w[e] for e, (a, b) in enumerate(zip(starts, starts[1:]))])

    def grouped():
        return lambda: torch._grouped_mm(tensors["x"], tensors["w"], offs=tensors["ends"])
    tensors = dict(x=data.normal(M, K), w=data.normal(E, K, N, scale=0.02), ends=ends)
    return Case(tensors, eager, bytes=2*(M*K + E*K*N + M*N), operations=dict(bf16=2*M*N*K), peers={"grouped_mm": grouped})


@kernel(dict(T=32768, E=128, K=8), dict(T=9, E=12, K=3), tolerance=1e-4, mismatches=5e-2)
def moe_gate_softmax(data, T, E, K):
    """The largest softmax weights of each token, normalised, their experts, and how often each expert is taken."""
    def eager(x):
        v, e = torch.softmax(wide(x), -1).topk(K, -1)
        return v/v.sum(-1, keepdim=True), e, torch.bincount(e.flatten(), minlength=E)
    x = data.floats(T, E)  # distinct, so that no tie decides
    return Case(dict(x=x), eager, bytes=T*E*4 + T*K*12, constants={"K": str(K)})
