"""Definitions of operators that FlashInfer-Bench asks for, at small sizes, in its form: references and workloads are our own."""
import torch

VAR, BF16, F32, I32 = {"type": "var"}, "bfloat16", "float32", "int32"
OPERATORS: dict = {}


def const(value):
    return {"type": "const", "value": value}


def tensor(dtype, *shape):
    return {"shape": list(shape), "dtype": dtype}


def scalar(dtype=F32):
    return {"shape": None, "dtype": dtype}


def operator(name, op_type, axes, inputs, outputs, reference, **workloads):
    """`workloads`: by uuid, the var axes and what is not drawn: numbers, and tensors that a file holds."""
    definition = {"name": name, "op_type": op_type, "axes": axes, "inputs": inputs, "outputs": outputs,
                  "reference": "import math\nimport torch\n\n" + reference}
    OPERATORS[name] = definition, workloads


def ints(*values, dtype=torch.int32):
    return torch.tensor(values, dtype=dtype)


NORM = """
@torch.no_grad()
def run(hidden_states, {more}weight):
    x = hidden_states.float(){plus}
    return (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + {eps}) * weight.float()).to(hidden_states.dtype)
"""
ROWS = tensor(BF16, "batch_size", "hidden_size")
for size, eps in ((64, "1e-6"), (4096, "1e-5")):
    axes = {"batch_size": VAR, "hidden_size": const(size)}
    weight = tensor(BF16, "hidden_size")
    operator(f"rmsnorm_h{size}", "rmsnorm", axes, {"hidden_states": ROWS, "weight": weight}, {"output": ROWS},
             NORM.format(more="", plus="", eps=eps), a=({"batch_size": 5}, {}))
    operator(f"fused_add_rmsnorm_h{size}", "rmsnorm", axes, {"hidden_states": ROWS, "residual": ROWS, "weight": weight},
             {"output": ROWS}, NORM.format(more="residual, ", plus=" + residual.float()", eps=eps), a=({"batch_size": 3}, {}))
operator("gemm_n48_k32", "gemm", {"M": VAR, "N": const(48), "K": const(32)},
         {"A": tensor("float16", "M", "K"), "B": tensor("float16", "N", "K")}, {"C": tensor("float16", "M", "N")},
         "def run(A, B):\n    return A @ B.T\n", a=({"M": 7}, {}))

ROPE = """
def turn(x, table, positions):
    half = table.shape[1] // 2
    cos, sin = (one[:, None] for one in table[positions].split(half, -1))
    a, b = {split}
    turned = {joined}
    return torch.cat([turned.to(x.dtype), x[..., 2 * half:]], -1)

@torch.no_grad()
def run(q, k, cos_sin_cache, positions):
    return turn(q, cos_sin_cache, positions), turn(k, cos_sin_cache, positions)
"""
for style, split, joined in (
        ("neox", "x[..., :half].float(), x[..., half:2 * half].float()", "torch.cat([a * cos - b * sin, b * cos + a * sin], -1)"),
        ("gptj", "x[..., 0:2 * half:2].float(), x[..., 1:2 * half:2].float()",
         "torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)")):
    heads = {"q": tensor(BF16, "n", "h", "d"), "k": tensor(BF16, "n", "g", "d")}
    operator(f"rope_with_cos_sin_cache_{style}_style_d16_rd8", "rope",
             {"n": VAR, "h": VAR, "g": VAR, "length": VAR, "d": const(16), "rotary": const(8)},
             {**heads, "cos_sin_cache": tensor(F32, "length", "rotary"), "positions": tensor("int64", "n")},
             {"q_out": heads["q"], "k_out": heads["k"]}, ROPE.format(split=split, joined=joined),
             a=({"n": 5, "h": 4, "g": 2, "length": 9}, {"positions": ints(0, 8, 3, 3, 1, dtype=torch.int64)}))

# Both kinds of attention: of a query at `row` the keys [first, end), whose scores and values the caller gives.
ATTEND = """
def attend(scores, values):
    if not scores.shape[-1]:
        return torch.zeros(scores.shape[0], values.shape[-1]), torch.full((scores.shape[0],), -math.inf)
    weights = torch.softmax(scores, -1)
    shared = values if values.dim() == 3 else values[:, None].expand(-1, scores.shape[0], -1)
    return torch.einsum("ht,thd->hd", weights, shared), torch.logsumexp(scores, -1) / math.log(2.0)

def bounds(row, kv_indptr, qo_indptr):
    if qo_indptr is None:
        return int(kv_indptr[row]), int(kv_indptr[row + 1])
    b = int((qo_indptr[1:] <= row).sum())
    first, after = int(kv_indptr[b]), int(qo_indptr[b + 1]) - row - 1
    return first, max(first, int(kv_indptr[b + 1]) - after)
"""
GQA = ATTEND + """
@torch.no_grad()
def run(q, {caches}, {pointers}, sm_scale):
    {keys}
    repeat = q.shape[1] // k.shape[1]
    outputs, sums = [], []
    for row in range(q.shape[0]):
        first, end = bounds(row, kv_indptr, {queries})
        some_k, some_v = (one[{chosen}].float().repeat_interleave(repeat, 1) for one in (k, v))
        output, lse = attend(torch.einsum("hd,thd->ht", q[row].float(), some_k) * sm_scale, some_v)
        outputs.append(output)
        sums.append(lse)
    return torch.stack(outputs).to(q.dtype), torch.stack(sums).float()
"""
MLA = ATTEND + """
@torch.no_grad()
def run(q_nope, q_pe, ckv_cache, kpe_cache, {pointers}, sm_scale):
    outputs, sums = [], []
    for row in range(q_nope.shape[0]):
        first, end = bounds(row, kv_indptr, {queries})
        chosen = kv_indices[first:end].long()
        c, r = ckv_cache[chosen, 0].float(), kpe_cache[chosen, 0].float()
        output, lse = attend((q_nope[row].float() @ c.T + q_pe[row].float() @ r.T) * sm_scale, c)
        outputs.append(output)
        sums.append(lse)
    return torch.stack(outputs).to(q_nope.dtype), torch.stack(sums).float()
"""
QUERIES = {"total_q": VAR, "len_indptr": VAR}
PAGED = {**QUERIES, "num_pages": VAR, "num_kv_indices": VAR, "page_size": const(1)}
HEADS = {"h": const(4), "g": const(2), "d": const(16)}
POINTERS = {"kv_indptr": tensor(I32, "len_indptr"), "kv_indices": tensor(I32, "num_kv_indices")}
CACHE = tensor(BF16, "num_pages", "page_size", "g", "d")
INDICES = ints(7, 2, 5, 0, 1, 6)
LSE = tensor(F32, "total_q", "h")
Q = tensor(BF16, "total_q", "h", "d")
EMPTY = "empty"  # a workload in which a query sees no key: the reference's sum is then -inf


def decode(*kv):
    return {"total_q": 3, "len_indptr": 4, "num_pages": 8, "num_kv_indices": 6}, {
        "kv_indptr": ints(*kv), "kv_indices": INDICES, "sm_scale": 0.25}


def prefill(*qo, is_paged=True):
    more = {"num_pages": 8, "num_kv_indices": 6} if is_paged else {"total_kv": 6}
    return {"total_q": 5, "len_indptr": 3, **more}, {"qo_indptr": ints(*qo), "kv_indptr": ints(0, 4, 6), "sm_scale": 0.25,
                                                     **({"kv_indices": INDICES} if is_paged else {})}


DECODE = {"a": decode(0, 3, 4, 6), EMPTY: decode(0, 4, 4, 6)}
PREFILL = {"a": prefill(0, 3, 5), EMPTY: prefill(0, 2, 5)}
RAGGED = {"a": prefill(0, 3, 5, is_paged=False), EMPTY: prefill(0, 2, 5, is_paged=False)}
QO = {"qo_indptr": tensor(I32, "len_indptr")}
for stage, first, pointers, queries, work in (("decode", {}, "kv_indptr, kv_indices", "None", DECODE),
                                             ("prefill_causal", QO, "qo_indptr, kv_indptr, kv_indices", "qo_indptr", PREFILL)):
    operator(f"gqa_paged_{stage}_h4_kv2_d16_ps1", "gqa_paged", {**PAGED, **HEADS},
             {"q": Q, "k_cache": CACHE, "v_cache": CACHE, **first, **POINTERS, "sm_scale": scalar()}, {"output": Q, "lse": LSE},
             GQA.format(caches="k_cache, v_cache", pointers=pointers, queries=queries,
                        keys="k, v = k_cache[:, 0], v_cache[:, 0]", chosen="kv_indices[first:end].long()"), **work)
    operator(f"mla_paged_{stage}_h4_ckv16_kpe8_ps1", "mla_paged", {**PAGED, "h": const(4), "c": const(16), "r": const(8)},
             {"q_nope": tensor(BF16, "total_q", "h", "c"), "q_pe": tensor(BF16, "total_q", "h", "r"),
              "ckv_cache": tensor(BF16, "num_pages", "page_size", "c"), "kpe_cache": tensor(BF16, "num_pages", "page_size", "r"),
              **first, **POINTERS, "sm_scale": scalar()},
             {"output": tensor(BF16, "total_q", "h", "c"), "lse": LSE}, MLA.format(pointers=pointers, queries=queries), **work)
for name, group, length in (("gqa_ragged_prefill_causal_h4_kv2_d16", "g", "d"), ("mla_ragged_prefill_causal_h4_qk16_vo8", "h", "e")):
    operator(name, name[:10], {**QUERIES, "total_kv": VAR, "h": const(4), "d": const(16),
                               **({"g": const(2)} if group == "g" else {"e": const(8)})},
             {"q": Q, "k": tensor(BF16, "total_kv", group, "d"), "v": tensor(BF16, "total_kv", group, length), **QO,
              "kv_indptr": tensor(I32, "len_indptr"), "sm_scale": scalar()},
             {"output": tensor(BF16, "total_q", "h", length), "lse": LSE},
             GQA.format(caches="k, v", pointers="qo_indptr, kv_indptr", queries="qo_indptr", keys="pass", chosen="first:end"), **RAGGED)

GDN = """
def step(S, q, k, v, decay, beta, scale):
    repeat = v.shape[-2] // q.shape[-2]
    q, k = (one.float().repeat_interleave(repeat, -2) for one in (q, k))
    S = S * decay[..., None, None]
    u = (v.float() - torch.einsum("...hvk,...hk->...hv", S, k)) * beta[..., None]
    S = S + u[..., :, None] * k[..., None, :]
    return scale * torch.einsum("...hvk,...hk->...hv", S, q), S
"""
GDN_HEADS = {"hq": const(2), "hv": const(4), "size": const(8)}
STATE = tensor(F32, "batch_size", "hv", "size", "size")
operator("gdn_decode_qk2_v4_d8_k_last", "gdn", {"batch_size": VAR, "one": const(1), **GDN_HEADS},
         {"q": tensor(BF16, "batch_size", "one", "hq", "size"), "k": tensor(BF16, "batch_size", "one", "hq", "size"),
          "v": tensor(BF16, "batch_size", "one", "hv", "size"), "state": STATE, "A_log": tensor(F32, "hv"),
          "a": tensor(BF16, "batch_size", "one", "hv"), "dt_bias": tensor(BF16, "hv"), "b": tensor(BF16, "batch_size", "one", "hv"),
          "scale": scalar()}, {"output": tensor(BF16, "batch_size", "one", "hv", "size"), "new_state": STATE}, GDN + """
@torch.no_grad()
def run(q, k, v, state, A_log, a, dt_bias, b, scale):
    decay = torch.exp(-torch.exp(A_log) * torch.nn.functional.softplus(a[:, 0].float() + dt_bias.float()))
    output, state = step(state, q[:, 0], k[:, 0], v[:, 0], decay, torch.sigmoid(b[:, 0].float()), scale)
    return output[:, None].to(q.dtype), state
""", a=({"batch_size": 3}, {"scale": 0.35}))
operator("gdn_prefill_qk2_v4_d8_k_last", "gdn", {"total": VAR, "batch_size": VAR, "len": VAR, **GDN_HEADS},
         {"q": tensor(BF16, "total", "hq", "size"), "k": tensor(BF16, "total", "hq", "size"), "v": tensor(BF16, "total", "hv", "size"),
          "g": tensor(F32, "total", "hv"), "beta": tensor(F32, "total", "hv"), "cu_seqlens": tensor("int64", "len"),
          "initial_state": STATE, "scale": scalar()},
         {"output": tensor(BF16, "total", "hv", "size"), "final_state": STATE}, GDN + """
@torch.no_grad()
def run(q, k, v, g, beta, cu_seqlens, initial_state, scale):
    states, outputs = [], []
    for n in range(initial_state.shape[0]):
        S = initial_state[n]
        for t in range(int(cu_seqlens[n]), int(cu_seqlens[n + 1])):
            output, S = step(S, q[t], k[t], v[t], g[t], beta[t], scale)
            outputs.append(output)
        states.append(S)
    return torch.stack(outputs).to(q.dtype), torch.stack(states)
""", a=({"total": 5, "batch_size": 2, "len": 3}, {"cu_seqlens": ints(0, 3, 5, dtype=torch.int64), "scale": 0.35}))

F8 = "float8_e4m3fn"
operator("moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h128_i128", "moe",
         {"seq_len": VAR, "E": const(32), "L": const(4), "H": const(128), "I": const(128), "I2": const(256), "hb": const(1),
          "ib": const(1), "gb": const(2)},
         {"routing_logits": tensor(F32, "seq_len", "E"), "routing_bias": tensor(BF16, "E"), "hidden_states": tensor(F8, "seq_len", "H"),
          "hidden_states_scale": tensor(F32, "hb", "seq_len"), "gemm1_weights": tensor(F8, "L", "I2", "H"),
          "gemm1_weights_scale": tensor(F32, "L", "gb", "hb"), "gemm2_weights": tensor(F8, "L", "H", "I"),
          "gemm2_weights_scale": tensor(F32, "L", "hb", "ib"), "local_expert_offset": scalar(I32), "routed_scaling_factor": scalar()},
         {"output": tensor(BF16, "seq_len", "H")}, """
def blocks(weights, scale):
    return weights.float() * scale.repeat_interleave(128, -2).repeat_interleave(128, -1)

@torch.no_grad()
def run(routing_logits, routing_bias, hidden_states, hidden_states_scale, gemm1_weights, gemm1_weights_scale, gemm2_weights,
        gemm2_weights_scale, local_expert_offset, routed_scaling_factor):
    p = torch.sigmoid(routing_logits.float())
    ranked = p + routing_bias.float()
    groups = ranked.unflatten(1, (8, -1))
    chosen = groups.topk(2, -1).values.sum(-1).topk(4, -1).indices
    seen = torch.zeros_like(groups[..., 0]).scatter(1, chosen, 1.0).bool()
    experts = groups.masked_fill(~seen[..., None], -math.inf).flatten(1).topk(8, -1).indices
    weights = p.gather(1, experts)
    weights = weights / (weights.sum(-1, keepdim=True) + 1e-20) * routed_scaling_factor
    x = hidden_states.float() * hidden_states_scale.T.repeat_interleave(128, -1)
    output = torch.zeros_like(x)
    for e in range(gemm1_weights.shape[0]):
        up, gate = (x @ blocks(gemm1_weights[e], gemm1_weights_scale[e]).T).chunk(2, -1)
        y = (torch.nn.functional.silu(gate) * up) @ blocks(gemm2_weights[e], gemm2_weights_scale[e]).T
        output = output + y * (weights * (experts == e + local_expert_offset)).sum(-1, keepdim=True)
    return output.to(torch.bfloat16)
""", a=({"seq_len": 3}, {"local_expert_offset": 8, "routed_scaling_factor": 2.5}))
