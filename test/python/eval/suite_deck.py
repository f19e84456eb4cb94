"""Problems in the form of kernelbench.com's Hard deck, at small shapes: what its six ask for, written anew."""

HEAD = "import torch\nfrom torch import nn\n\n"
DECK = {
    "01_fp8_gemm": ([{"M": 5, "N": 8, "K": 33}], '''
M = 4
N = 4
K = 4

class Model(nn.Module):
    def __init__(self, M, N, K):
        super().__init__()
        w = torch.randn(N, K) * 0.02
        scale = w.abs().amax(1) / 448
        self.register_buffer("weight", (w / scale[:, None]).to(torch.float8_e4m3fn))
        self.register_buffer("weight_scale", scale)

    def forward(self, x):
        y = x.to(torch.bfloat16) @ self.weight.to(torch.bfloat16).T
        return (y.float() * self.weight_scale).to(torch.bfloat16)

def get_inputs():
    return [(torch.rand(M, K) * 8 - 4).to(torch.float8_e4m3fn)]

def get_init_inputs():
    return [M, N, K]
'''),
    "02_kda_cutlass": ([{"B": 2, "T": 7, "H": 2, "K": 8, "V": 4}], '''
B = 1
T = 4
H = 1
K = 4
V = 4

class Model(nn.Module):
    def __init__(self, B, T, H, K, V):
        super().__init__()
        self.scale = K ** -0.5

    def forward(self, q, k, v, g, beta):
        state = q.new_zeros(q.shape[0], q.shape[2], q.shape[3], v.shape[3], dtype=torch.float32)
        out = []
        for t in range(q.shape[1]):
            state = state * g[:, t].float().exp()[..., None]
            key = k[:, t].float()
            u = (v[:, t].float() - torch.einsum("bhk,bhkv->bhv", key, state)) * beta[:, t].float()[..., None]
            state = state + key[..., None] * u[..., None, :]
            out.append(torch.einsum("bhk,bhkv->bhv", q[:, t].float() * self.scale, state))
        return torch.stack(out, 1).to(v.dtype)

def get_inputs():
    torch.manual_seed(0)
    q, k, v = (torch.randn(B, T, H, size, dtype=torch.bfloat16) * 0.1 for size in (K, K, V))
    return [q, k, v, torch.randn(B, T, H, K) * 0.1 - 0.05, torch.sigmoid(torch.randn(B, T, H, dtype=torch.bfloat16))]

def get_init_inputs():
    return [B, T, H, K, V]
'''),
    "03_paged_attention": ([{"batch": 3, "seq_len": 10}, {"batch": 2, "seq_len": 8}], '''
BATCH = 2
SEQ_LEN = 8
GROUPS = 2
D = 8
PAGE = 4

class Model(nn.Module):
    def __init__(self, batch, seq_len):
        super().__init__()

    def forward(self, query, kv_cache, block_table, seq_lens):
        D, repeat = query.shape[-1], query.shape[1] // kv_cache.shape[2]
        out = []
        for b in range(query.shape[0]):
            rows = kv_cache[block_table[b].long()].flatten(0, 1)[:int(seq_lens[b])].float()
            k, v = (one.repeat_interleave(repeat, 1) for one in rows.split(D, -1))
            p = torch.softmax(torch.einsum("hd,lhd->hl", query[b].float(), k) * D ** -0.5, -1)
            out.append(torch.einsum("hl,lhd->hd", p, v))
        return torch.stack(out).to(query.dtype)

def get_inputs():
    pages = (SEQ_LEN + PAGE - 1) // PAGE
    table = torch.randperm(BATCH * pages + 2)[:BATCH * pages].reshape(BATCH, pages).int()
    return [torch.randn(BATCH, 2 * GROUPS, D).bfloat16(), torch.randn(BATCH * pages + 2, PAGE, GROUPS, 2 * D).bfloat16(), table,
            torch.full((BATCH,), SEQ_LEN, dtype=torch.int32)]

def get_init_inputs():
    return [BATCH, SEQ_LEN]
'''),
    "05_topk_bitonic": ([{"batch": 2, "n": 40, "k": 8}, {"batch": 3, "n": 9, "k": 1}], '''
batch = 1
n = 8
k = 2

class Model(nn.Module):
    def __init__(self, batch, n, k):
        super().__init__()
        self.k = k

    def forward(self, x):
        return torch.topk(x, self.k, dim=-1)

def get_inputs():
    return [torch.randn(batch, n)]

def get_init_inputs():
    return [batch, n, k]
'''),
    "06_sonic_moe_swiglu": ([{"T_total": 6, "H": 8, "I": 5, "E": 4, "K": 2}], '''
T_total = 4
H = 8
I = 8
E = 2
K = 2

class Model(nn.Module):
    def __init__(self, T_total, H, I, E, K):
        super().__init__()
        self.W_gate = nn.Parameter(torch.randn(E, H, I, dtype=torch.bfloat16) * 0.2)
        self.W_up = nn.Parameter(torch.randn(E, H, I, dtype=torch.bfloat16) * 0.2)

    def forward(self, hidden_states, expert_offsets):
        parts = []
        for e in range(self.W_gate.shape[0]):
            x = hidden_states[int(expert_offsets[e]):int(expert_offsets[e + 1])]
            parts.append(nn.functional.silu(x @ self.W_gate[e]) * (x @ self.W_up[e]))
        return torch.cat(parts)

def get_inputs():
    ends = torch.sort(torch.randint(T_total * K + 1, (E - 1,))).values
    return [torch.randn(T_total * K, H, dtype=torch.bfloat16), torch.cat([ends.new_zeros(1), ends, ends.new_full((1,), T_total * K)]).int()]

def get_init_inputs():
    return [T_total, H, I, E, K]
'''),
    "07_w4a16_gemm": ([{"M": 1, "N": 6, "K": 16}, {"M": 5, "N": 7, "K": 24}], '''
M = 1
N = 4
K = 16

class Model(nn.Module):
    def __init__(self, M, N, K, group_size=8):
        super().__init__()
        self.group_size = group_size
        self.register_buffer("w_q", torch.randint(0, 256, (K // 2, N)).to(torch.uint8))
        self.register_buffer("scales", torch.rand(K // group_size, N).bfloat16() + 0.1)
        self.register_buffer("zeros", torch.randint(0, 16, (K // group_size, N)).bfloat16())

    def forward(self, x):
        w = torch.stack([self.w_q & 15, self.w_q >> 4], 1).flatten(0, 1).to(torch.bfloat16)
        s, z = (one.repeat_interleave(self.group_size, 0) for one in (self.scales, self.zeros))
        return x.to(torch.bfloat16) @ ((w - z) * s)

def get_inputs():
    return [torch.randn(M, K, dtype=torch.bfloat16)]

def get_init_inputs():
    return [M, N, K]
''')}
CHECK = "".join(f'reference.{name.upper()} = shape["{name}"]\n' for name in ("batch", "seq_len"))


def write(root):
    for name, (shapes, reference) in DECK.items():
        folder = root / "hard" / "problems-x" / name
        folder.mkdir(parents=True)
        (folder / "reference.py").write_text(HEAD + reference)
        (folder / "shapes.py").write_text(f"SHAPES = {shapes!r}\n")
        if "BATCH" in reference:
            (folder / "check.py").write_text(CHECK)
        (folder / "problem.yaml").write_text("tolerance:\n  bfloat16: 0.05\n")
    return root
