"""Linear attention, state space models and other recurrences along time, as one writes them: step by step."""
import math

import torch
import torch.nn.functional as F

from .suite import Case, bf16, f32, kernel, wide


def steps(count, state, step):
    """Results of each step, stacked along dim 1; `step(t, state)` gives the next state and a result."""
    results = []
    for t in range(count):
        state, result = step(t, state)
        results.append(result)
    return torch.stack(results, 1)


def column(x):
    return x[..., None]


@kernel(dict(B=4, T=2048, H=16, K=128, V=128), dict(B=2, T=11, H=2, K=8, V=12), tolerance=3e-2, compiled=False)
def gated_delta_rule(data, B, T, H, K, V):
    """Gated DeltaNet: the state decays, and what it says of the key is replaced."""
    def eager(q, k, v, g, beta):
        q, k, v = wide(q), wide(k), wide(v)

        def step(t, S):
            S = S*g[:, t].exp()[..., None, None]
            u = beta[:, t, :, None]*(v[:, t] - (k[:, t, :, None] @ S)[..., 0, :])
            S = S + column(k[:, t])*u[..., None, :]
            return S, (q[:, t, :, None] @ S)[..., 0, :]*K**-0.5
        return steps(T, q.new_zeros(B, H, K, V), step).to(q.dtype if q.dtype == torch.float64 else bf16)

    def chunk():
        from fla.ops.gated_delta_rule import chunk_gated_delta_rule
        beta = tensors["beta"].to(bf16)
        return lambda: chunk_gated_delta_rule(tensors["q"], tensors["k"], tensors["v"], g=tensors["g"], beta=beta)[0]

    def recurrent():
        from fla.ops.gated_delta_rule import fused_recurrent_gated_delta_rule
        return lambda: fused_recurrent_gated_delta_rule(**tensors)[0]
    k = F.normalize(data.floats(B, T, H, K), dim=-1).to(bf16)
    tensors = dict(q=data.normal(B, T, H, K), k=k, v=data.normal(B, T, H, V), g=-data.uniform(B, T, H, high=0.1),
                   beta=data.uniform(B, T, H))
    return Case(tensors, eager, bytes=B*T*H*(2*K + 2*V)*2, operations=dict(bf16=8*B*T*H*K*V),
                peers={"FLA chunk": chunk, "FLA recurrent": recurrent})


@kernel(dict(B=2, T=2048, H=16, K=128, V=128), dict(B=2, T=11, H=2, K=8, V=12), tolerance=3e-2, compiled=False)
def kimi_delta_attention(data, B, T, H, K, V):
    """The delta rule with a decay for each channel of the key."""
    def eager(q, k, v, g, beta):
        q, k, v = wide(q), wide(k), wide(v)

        def step(t, S):
            S = S*column(g[:, t].exp())
            u = beta[:, t, :, None]*(v[:, t] - (k[:, t, :, None] @ S)[..., 0, :])
            S = S + column(k[:, t])*u[..., None, :]
            return S, (q[:, t, :, None] @ S)[..., 0, :]*K**-0.5
        return steps(T, q.new_zeros(B, H, K, V), step).to(q.dtype if q.dtype == torch.float64 else bf16)

    def chunk():
        from fla.ops.kda import chunk_kda
        beta = tensors["beta"].to(bf16)
        return lambda: chunk_kda(tensors["q"], tensors["k"], tensors["v"], g=tensors["g"], beta=beta)[0]
    k = F.normalize(data.floats(B, T, H, K), dim=-1).to(bf16)
    tensors = dict(q=data.normal(B, T, H, K), k=k, v=data.normal(B, T, H, V), g=-data.uniform(B, T, H, K, high=0.1),
                   beta=data.uniform(B, T, H))
    return Case(tensors, eager, bytes=B*T*H*(2*K + 2*V)*2 + B*T*H*K*4, operations=dict(bf16=8*B*T*H*K*V),
                peers={"FLA chunk": chunk})


@kernel(dict(B=4, T=4096, H=24, P=64, N=128, C=256), dict(B=2, T=12, H=2, P=6, N=8, C=4), tolerance=3e-2)
def mamba2_chunks(data, B, T, H, P, N, C):
    """Mamba-2 in chunks of 256, as its paper writes it: products within, a recurrence between."""
    L = T//C

    def eager(x, dt, A, Bm, Cm):
        xs, d, b, c = wide(x).view(B, L, C, H, P), dt.view(B, L, C, H), wide(Bm).view(B, L, C, N), wide(Cm).view(B, L, C, N)
        a = (d*A).cumsum(2)
        s = torch.einsum("blcn,blch,blchp->blhnp", b, torch.exp(a[:, :, -1:] - a)*d, xs)
        S, before = torch.zeros_like(s[:, 0]), []
        for chunk in range(L):
            before.append(S)
            S = a[:, chunk, -1].exp()[..., None, None]*S + s[:, chunk]
        later = torch.ones(C, C, device=x.device, dtype=torch.bool).triu(1)[..., None]
        decay = torch.exp((a[:, :, :, None] - a[:, :, None]).masked_fill(later, -math.inf))
        w = decay*torch.einsum("blin,bljn->blij", c, b)[..., None]*d[:, :, None]
        y = torch.einsum("blijh,bljhp->blihp", w, xs)
        y = y + torch.einsum("blin,blih,blhnp->blihp", c, a.exp(), torch.stack(before, 1))
        return y.reshape(B, T, H, P).to(x.dtype)
    case = mamba2(data, B, T, H, P, N)
    case.eager, case.constants = eager, {"C": str(C)}
    return case


@kernel(dict(B=4, T=4096, H=24, P=64, N=128), dict(B=2, T=11, H=2, P=6, N=8), tolerance=3e-2, compiled=False)
def mamba2_steps(data, B, T, H, P, N):
    """The same step by step."""
    return mamba2(data, B, T, H, P, N)


def mamba2(data, B, T, H, P, N):
    def eager(x, dt, A, Bm, Cm):
        xs, b, c = wide(x), wide(Bm), wide(Cm)

        def step(t, S):
            S = torch.exp(dt[:, t]*A)[..., None, None]*S + b[:, t, None, :, None]*(dt[:, t, :, None]*xs[:, t])[:, :, None]
            return S, (c[:, t, None, :, None]*S).sum(2)
        return steps(T, xs.new_zeros(B, H, N, P), step).to(x.dtype)

    def simple_gla():
        from fla.ops.simple_gla import chunk_simple_gla
        q, k = (tensors[name][:, :, None].expand(B, T, H, N).contiguous() for name in ("Cm", "Bm"))
        v, g = (tensors["x"].float()*tensors["dt"][..., None]).to(bf16), tensors["dt"]*tensors["A"]
        return lambda: chunk_simple_gla(q, k, v, g=g, scale=1.0)[0]
    tensors = dict(x=data.normal(B, T, H, P), dt=data.uniform(B, T, H, high=0.1), A=-data.uniform(H, low=0.5, high=1.5),
                   Bm=data.normal(B, T, N), Cm=data.normal(B, T, N))
    return Case(tensors, eager, bytes=B*T*(H*P*4 + H*4 + N*4), operations=dict(bf16=4*B*T*H*N*P),
                peers={"FLA chunk_simple_gla": simple_gla})


@kernel(dict(B=4, T=2048, H=16, K=128, V=128), dict(B=2, T=11, H=2, K=8, V=12), tolerance=3e-2, compiled=False)
def gated_linear_attention(data, B, T, H, K, V):
    """A state with a decay for each channel of the key."""
    def eager(q, k, v, g):
        def step(t, S):
            S = column(g[:, t].exp())*S + column(wide(k)[:, t])*wide(v)[:, t][..., None, :]
            return S, (column(wide(q)[:, t])*S).sum(2)*K**-0.5
        return steps(T, wide(q).new_zeros(B, H, K, V), step).to(q.dtype)

    def chunk():
        from fla.ops.gla import chunk_gla
        return lambda: chunk_gla(*tensors.values())[0]
    tensors = dict(q=data.normal(B, T, H, K), k=data.normal(B, T, H, K), v=data.normal(B, T, H, V),
                   g=-data.uniform(B, T, H, K, high=0.1))
    return Case(tensors, eager, bytes=B*T*H*(2*K + 2*V)*2 + B*T*H*K*4, operations=dict(bf16=4*B*T*H*K*V),
                peers={"FLA chunk": chunk})


@kernel(dict(B=4, T=2048, H=16, K=128, V=128), dict(B=2, T=11, H=2, K=8, V=12), tolerance=3e-2, compiled=False)
def retention(data, B, T, H, K, V):
    """RetNet: a constant decay for each head."""
    def eager(q, k, v, decay):
        def step(t, S):
            S = decay[:, None, None]*S + column(wide(k)[:, t])*wide(v)[:, t][..., None, :]
            return S, (column(wide(q)[:, t])*S).sum(2)*K**-0.5
        return steps(T, wide(q).new_zeros(B, H, K, V), step).to(q.dtype)

    def chunk():
        from fla.ops.simple_gla import chunk_simple_gla
        g = tensors["decay"].log().expand(B, T, H).contiguous()
        return lambda: chunk_simple_gla(tensors["q"], tensors["k"], tensors["v"], g=g, scale=K**-0.5)[0]
    tensors = dict(q=data.normal(B, T, H, K), k=data.normal(B, T, H, K), v=data.normal(B, T, H, V),
                   decay=1 - 2**-data.uniform(H, low=5, high=8))
    return Case(tensors, eager, bytes=B*T*H*(2*K + 2*V)*2, operations=dict(bf16=4*B*T*H*K*V),
                peers={"FLA chunk_simple_gla": chunk})


@kernel(dict(B=4, T=2048, H=32, K=64, V=64), dict(B=2, T=11, H=2, K=8, V=12), tolerance=3e-2, compiled=False)
def rwkv6(data, B, T, H, K, V):
    """RWKV-6: decays that data gives, and a bonus for the present token."""
    def eager(r, k, v, w, u):
        def step(t, S):
            pair = column(wide(k)[:, t])*wide(v)[:, t][..., None, :]
            result = (column(wide(r)[:, t])*(S + column(u)*pair)).sum(2)
            return column(w[:, t].exp())*S + pair, result
        return steps(T, wide(r).new_zeros(B, H, K, V), step).to(r.dtype)

    def chunk():
        from fla.ops.rwkv6 import chunk_rwkv6
        return lambda: chunk_rwkv6(*tensors.values(), scale=1.0)[0]
    tensors = dict(r=data.normal(B, T, H, K), k=data.normal(B, T, H, K), v=data.normal(B, T, H, V),
                   w=-data.uniform(B, T, H, K, low=0.05, high=0.5), u=data.floats(H, K))
    return Case(tensors, eager, bytes=B*T*H*(2*K + 2*V)*2 + B*T*H*K*4, operations=dict(bf16=4*B*T*H*K*V),
                peers={"FLA chunk": chunk})


@kernel(dict(B=4, T=2048, H=32, K=64, V=64), dict(B=2, T=11, H=2, K=8, V=12), tolerance=3e-2, compiled=False)
def rwkv7(data, B, T, H, K, V):
    """RWKV-7: the state is also taken along one direction and put along another."""
    def eager(r, w, k, v, a, b):
        def step(t, S):
            S = column(w[:, t].exp())*S + column(wide(b)[:, t])*(column(wide(a)[:, t])*S).sum(2, keepdim=True) \
                + column(wide(k)[:, t])*wide(v)[:, t][..., None, :]
            return S, (column(wide(r)[:, t])*S).sum(2)
        return steps(T, wide(r).new_zeros(B, H, K, V), step).to(r.dtype)

    def chunk():
        from fla.ops.rwkv7 import chunk_rwkv7
        given = {name: one.to(bf16) for name, one in tensors.items()}
        return lambda: chunk_rwkv7(**given, scale=1.0)[0]
    direction = F.normalize(data.floats(B, T, H, K), dim=-1)
    tensors = dict(r=data.normal(B, T, H, K), w=-data.uniform(B, T, H, K, low=0.05, high=0.5), k=data.normal(B, T, H, K),
                   v=data.normal(B, T, H, V), a=-direction.to(bf16), b=(direction*data.uniform(B, T, H, K)).to(bf16))
    return Case(tensors, eager, bytes=B*T*H*(4*K + 2*V)*2 + B*T*H*K*4, operations=dict(bf16=6*B*T*H*K*V),
                peers={"FLA chunk": chunk})


@kernel(dict(B=8, T=2048, D=2048, N=16), dict(B=2, T=11, D=5, N=4), tolerance=2e-2, compiled=False)
def selective_scan(data, B, T, D, N):
    """Mamba-1: a diagonal state for each channel."""
    def eager(x, dt, A, Bm, Cm, skip):
        def step(t, S):
            d = dt[:, t, :, None]
            S = torch.exp(d*A)*S + d*wide(Bm)[:, t, None]*wide(x)[:, t, :, None]
            return S, (S*wide(Cm)[:, t, None]).sum(-1) + skip*wide(x)[:, t]
        return steps(T, wide(x).new_zeros(B, D, N), step).to(x.dtype)
    tensors = dict(x=data.normal(B, T, D), dt=data.uniform(B, T, D, high=0.1), A=-data.uniform(D, N, low=0.5, high=4),
                   Bm=data.normal(B, T, N), Cm=data.normal(B, T, N), skip=data.floats(D))
    return Case(tensors, eager, bytes=B*T*D*8 + B*T*N*4, operations=dict(f32=8*B*T*D*N))


@kernel(dict(B=128, H=32, K=128, V=128), dict(B=2, H=2, K=8, V=12), tolerance=2e-2)
def gated_delta_step(data, B, H, K, V):
    """One step of the gated delta rule for decoding: the states are updated in place."""
    def eager(S, q, k, v, g, beta):
        q, k, v = wide(q), wide(k), wide(v)
        decayed = S*g.exp()[..., None, None]
        u = beta[..., None]*(v - (k[:, :, None] @ decayed)[:, :, 0])
        S.copy_(decayed + column(k)*u[:, :, None])
        return ((q[:, :, None] @ S)[:, :, 0]*K**-0.5).to(q.dtype), S
    tensors = dict(S=data.floats(B, H, K, V), q=data.normal(B, H, K), k=F.normalize(data.floats(B, H, K), dim=-1).to(bf16),
                   v=data.normal(B, H, V), g=-data.uniform(B, H, high=0.1), beta=data.uniform(B, H))
    return Case(tensors, eager, bytes=B*H*K*V*8)


@kernel(dict(B=128, H=64, P=64, N=128), dict(B=2, H=2, P=6, N=8), tolerance=2e-2)
def mamba2_step(data, B, H, P, N):
    """One step of Mamba-2 for decoding: the states are updated in place."""
    def eager(S, x, dt, A, b, c):
        S.copy_(torch.exp(dt*A)[..., None, None]*S + (dt[..., None]*wide(x))[..., None]*wide(b)[:, None, None])
        return (S @ wide(c)[:, None, :, None])[..., 0].to(x.dtype), S
    tensors = dict(S=data.floats(B, H, P, N), x=data.normal(B, H, P), dt=data.uniform(B, H, high=0.1),
                   A=-data.uniform(H, low=0.5, high=1.5), b=data.normal(B, N), c=data.normal(B, N))
    return Case(tensors, eager, bytes=B*H*P*N*8)


@kernel(dict(B=8, D=4096, T=4096), dict(B=2, D=5, T=13), tolerance=2e-2)
def causal_conv1d_silu(data, B, D, T):
    """A causal convolution of width 4 for each channel, then SiLU."""
    def eager(x, w, b):
        return F.silu(F.conv1d(x, w[:, None], b, padding=3, groups=D)[..., :T])
    return Case(dict(x=data.normal(B, D, T), w=data.normal(D, 4), b=data.normal(D)), eager, bytes=B*D*T*4)


@kernel(dict(B=16, T=2048, D=2048), dict(B=2, T=13, D=5), tolerance=1e-4, compiled=False)
def min_gru(data, B, T, D):
    """A recurrence of first order with a gate from data: h = (1 - z) h + z c."""
    def eager(z, c):
        z = torch.sigmoid(z)

        def step(t, h):
            h = (1 - z[:, t])*h + z[:, t]*c[:, t]
            return h, h
        return steps(T, torch.zeros_like(z[:, 0]), step)
    return Case(dict(z=data.floats(B, T, D), c=data.floats(B, T, D)), eager, bytes=B*T*D*12)


@kernel(dict(B=4096, T=1024), dict(B=5, T=13), tolerance=1e-4, compiled=False)
def advantage_estimation(data, B, T):
    """Generalised advantages of reinforcement learning: a recurrence from the end, which ends of episodes cut."""
    def eager(reward, value, done):
        after = torch.cat((value[:, 1:], torch.zeros_like(value[:, :1])), 1)
        going = 1 - done
        delta = reward + 0.99*after*going - value
        gain, results = torch.zeros_like(value[:, 0]), []
        for t in reversed(range(T)):
            gain = delta[:, t] + 0.99*0.95*going[:, t]*gain
            results.append(gain)
        advantage = torch.stack(results[::-1], 1)
        return advantage, advantage + value
    tensors = dict(reward=data.floats(B, T), value=data.floats(B, T), done=(data.uniform(B, T) < 0.02).to(f32))
    return Case(tensors, eager, bytes=B*T*20)


@kernel(dict(T=256, B=64, I=512, H=512), dict(T=5, B=3, I=7, H=6), tolerance=1e-3, compiled=False)
def gru_layer(data, T, B, I, H):
    """A layer of gated recurrent units, by the library's kernel."""
    def eager(x, h, w, u, b, c):
        results = torch._VF.gru(x, h[None], [w, u, b, c], True, 1, 0.0, False, False, False)
        return results[0]
    scale = H**-0.5
    tensors = dict(x=data.floats(T, B, I), h=data.floats(B, H), w=data.floats(3*H, I, scale=scale),
                   u=data.floats(3*H, H, scale=scale),
                   b=data.floats(3*H), c=data.floats(3*H))
    return Case(tensors, eager, bytes=4*(T*B*(I + H) + 3*H*(I + H)), operations=dict(bf16=6*T*B*H*(I + H)))
