"""Choosing and sorting: the largest of long rows, whole sorts, sampling."""
import torch

from .suite import Case, kernel


@kernel(dict(B=64, V=128256, K=50), dict(B=3, V=301, K=7), tolerance=1e-5, mismatches=1e-3)
def topk_topp(data, B, V, K):
    """The probabilities of the 50 largest logits, cut where they add up to 0.9."""
    def eager(x):
        v, i = x.topk(K, -1)
        q = torch.softmax(v, -1)
        q = torch.where(q.cumsum(-1) - q < 0.9, q, 0.0)
        return q/q.sum(-1, keepdim=True), i
    return Case(dict(x=data.floats(B, V, scale=3)), eager, bytes=B*V*4, constants={"K": str(K)})


@kernel(dict(B=64, V=32000), dict(B=3, V=101), tolerance=1e-4, mismatches=2e-2)
def top_p_sample(data, B, V):
    """A token of each row, drawn from the largest probabilities that add up to 0.9, by a sort of the whole row."""
    def eager(x, u):
        v, i = torch.sort(torch.softmax(x, -1), dim=-1, descending=True, stable=True)
        kept = torch.where(v.cumsum(-1) - v < 0.9, v, 0.0)
        place = (kept.cumsum(-1) < (u*kept.sum(-1))[:, None]).sum(-1, keepdim=True)
        return i.gather(1, place)[:, 0]
    return Case(dict(x=data.floats(B, V, scale=3), u=data.uniform(B)), eager, bytes=B*V*4)


@kernel(dict(B=64, V=128256), dict(B=3, V=101), mismatches=2e-2)
def min_p_sample(data, B, V):
    """The largest of logits with Gumbel noise, among those of at least a tenth of the largest probability."""
    def eager(x, u):
        p = torch.softmax(x, -1)
        score = torch.where(p >= 0.1*p.amax(-1, keepdim=True), x - torch.log(-torch.log(u)), float("-inf"))
        return score.argmax(-1)
    return Case(dict(x=data.floats(B, V, scale=3), u=data.uniform(B, V, low=1e-6, high=0.999999)), eager, bytes=B*V*8)


@kernel(dict(B=65536, N=256), dict(B=5, N=32), tolerance=1e-5, mismatches=1e-3)
def topk_8_of_256(data, B, N):
    """Short rows: the eight largest, and the softmax of these."""
    def eager(x):
        v, i = x.topk(8, 1)
        return torch.softmax(v, 1), i
    return Case(dict(x=data.floats(B, N)), eager, bytes=B*N*4 + B*96)


@kernel(dict(B=256, N=131072, K=4096), dict(B=3, N=1025, K=130), mismatches=1e-2)
def topk_4096(data, B, N, K):
    """A large k of long rows, as sparse attention chooses keys."""
    def eager(x):
        return x.topk(K, 1)
    return Case(dict(x=data.floats(B, N)), eager, bytes=B*N*4 + B*K*12, constants={"K": str(K)})


@kernel(dict(B=4, N=65536, K=512), dict(B=2, N=1025, K=33), mismatches=1e-2)
def topk_512(data, B, N, K):
    """Few long rows: latency."""
    def eager(x):
        return x.topk(K, 1)
    return Case(dict(x=data.floats(B, N)), eager, bytes=B*N*4 + B*K*12, constants={"K": str(K)})


@kernel(dict(B=256, N=16384), dict(B=3, N=130))
def sort_rows(data, B, N):
    """Values and places of each row's sort."""
    def eager(x):
        return torch.sort(x, stable=True)
    return Case(dict(x=data.floats(B, N)), eager, bytes=B*N*16)


@kernel(dict(N=1 << 22), dict(N=1031))
def argsort_4m(data, N):
    """One row of four million integers, many of them equal."""
    def eager(x):
        return torch.argsort(x, stable=True)
    return Case(dict(x=data.integers(0, max(N//8, 5), N)), eager, bytes=N*12)


@kernel(dict(N=1 << 22), dict(N=1031))
def count_distinct(data, N):
    """How many different integers there are, by a sort."""
    def eager(x):
        return torch.unique(x).numel()*torch.ones((), dtype=torch.int64, device=x.device)
    return Case(dict(x=data.integers(0, max(N//8, 5), N)), eager, bytes=N*4)


@kernel(dict(B=4096, N=1024), dict(B=3, N=33), tolerance=1e-6, mismatches=1e-3)
def median_rows(data, B, N):
    """The lower median of each row and its place."""
    def eager(x):
        return torch.median(x, -1)
    return Case(dict(x=data.floats(B, N)), eager, bytes=B*N*4)


@kernel(dict(N=2048), dict(N=37), compiled=False, mismatches=1e-2)
def nms_mask(data, N):
    """Greedy suppression of overlapping boxes that lie in the order of their scores."""
    def eager(x):
        area = (x[:, 2] - x[:, 0])*(x[:, 3] - x[:, 1])
        low, high = torch.maximum(x[:, None, :2], x[None, :, :2]), torch.minimum(x[:, None, 2:], x[None, :, 2:])
        common = (high - low).clamp(min=0).prod(-1)
        over = common > 0.5*(area[:, None] + area - common)
        kept = torch.ones(N, dtype=torch.bool, device=x.device)
        for i in range(N):
            kept[i + 1:] &= ~(over[i, i + 1:] & kept[i])
        return kept
    corner = data.uniform(N, 2, high=10)
    return Case(dict(x=torch.cat((corner, corner + data.uniform(N, 2, low=1, high=5)), 1)), eager, bytes=N*17)


@kernel(dict(B=16, W=8, V=128256), dict(B=2, W=3, V=53), tolerance=1e-5, mismatches=2e-2)
def beam_step(data, B, W, V):
    """One step of beam search: the best of all continuations of a sequence's beams, and where they come from."""
    def eager(x, score):
        total = (torch.log_softmax(x, -1) + score[..., None]).flatten(1)
        best, place = total.topk(W, -1)
        return best, place//V, place % V
    return Case(dict(x=data.floats(B, W, V), score=data.floats(B, W)), eager, bytes=B*W*V*4)


@kernel(dict(B=64, K=8, V=32000), dict(B=5, K=4, V=53), mismatches=2e-2)
def speculative_accept(data, B, K, V):
    """How many drafted tokens are taken: up to the first whose ratio of probabilities is below a random number."""
    def eager(target, draft, token, u):
        p, q = (torch.softmax(one, -1).gather(2, token[..., None])[..., 0] for one in (target, draft))
        return (u < p/q).cumprod(1).sum(1)
    draft = data.floats(B, K, V)
    tensors = dict(target=draft + data.floats(B, K, V, scale=0.5), draft=draft,
                   token=data.integers(0, V, B, K, dtype=torch.int64),
                   u=data.uniform(B, K))
    return Case(tensors, eager, bytes=2*B*K*V*4)
