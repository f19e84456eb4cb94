# check: M=5, N=7
def k_softmax(x):
    return torch.softmax(x, 1)

# check: B=3, D=11
def k_layer_norm(x, w, b):
    return (x - x.mean(-1, True)) / torch.sqrt(x.var(-1, False, True) + 1e-5) * w + b

# check: M=5, N=4, K=9
def k_matmul_t(x, w):
    return x @ w.t()

# check: B=2, M=3, N=4, K=5
def k_bmm3(a, b):
    return torch.bmm(a, b)

# check: B=2, H=3, M=4, N=2, K=5
def k_broadcast_matmul(a, b):
    return torch.matmul(a, b)

# check: B=2, H=2, S=5, T=5, D=4
def k_attention(q, k, v):
    return torch.scaled_dot_product_attention(q, k, v, None, 0.0, True)

# check: B=2, S=3
def k_heads(x):
    return x.view(x.size(0), x.size(1), 8, 8).permute(0, 2, 1, 3)

# check: B=2, H=3, S=4, D=5
def k_merge(x):
    return x.transpose(1, 2).reshape(x.size(0), x.size(2), -1)

# check: N=2, C=3, H=2, W=4, O=5, F=24
def k_flat(x, w):
    return torch.linear(torch.flatten(x, 1), w)

# check: B=2, S=3, C=4
def k_qkv(x, w):
    a = torch.linear(x, w)
    c = x.size(2)
    return a[:, :, :c] * a[:, :, c:2 * c] + a[:, :, 2 * c:]

# check: N=3, M=4, D=5
def k_distances(x, y):
    return ((x.unsqueeze(1) - y.unsqueeze(0)) ** 2).sum(-1).sqrt()

# check: N=2, C=3, H=4, W=5
def k_pooled(x):
    return x.mean([2, 3])

# check: N=3, D=9
def k_std(x):
    return x.std(1)

# check: N=5, D=3
def k_variance(x):
    return x.var(0)

# check: N=2, C=3, H=2, W=2
def k_normalized(x):
    return x / torch.clamp_min(torch.sqrt((x * x).sum(1, True)), 1e-12)

# check: N=2, C=2, H=3, W=3
def k_padded(x):
    return torch.constant_pad_nd(x, [2, 3, 1, 1], 0.5)

# check: N=3, D=4
def k_chain(x, r):
    return torch.silu((x + r) * 0.5)

# check: N=5
def k_stacked(a, b):
    return torch.stack([a, b], -1)

# check: N=2, C=3, D=4
def k_joined(a, b):
    return torch.cat([torch.relu(a), b], 1)

# check: N=9
def k_conditional(x):
    return torch.where(x > 0, x, 0.1 * x)

# check: N=9
def k_ternary(x):
    return torch.where(x > 0, x, 0.1 * x)

# check: B=2, K=3, H=4, O=5
def k_two_layers(x, w1, b1, w2):
    return torch.linear(torch.relu(torch.linear(x, w1, b1)), w2)

# check: N=3, D=4
def k_mse_sum(a, b):
    return ((a - b) ** 2).sum()

# check: N=9
def k_gelu(x):
    return torch.gelu(x, approximate="tanh")

# check: M=2, N=9
def k_cumulative(x):
    return torch.cumsum(x, 1)

# check: M=2, N=5
def k_flipped(x):
    return torch.flip(x, [1])

# check: M=2, N=5
def k_rolled(x):
    return torch.roll(x, 2, 1)

# check: M=2, N=5
def k_repeated(x):
    return x.repeat_interleave(2, 1)

# check: N=5
def k_upper(x):
    return torch.triu(x, 1)

# check: N=4
def k_identity(x):
    return x + torch.eye(x.size(0))

# check: M=2, N=5
def k_positions(x):
    return x * torch.arange(x.size(1))

# check: M=3, N=7
def k_minimum_dim(x):
    v, e = torch.min(x, 1)
    return v, e

# check: M=3, N=7
def k_sorted(x):
    v, e = torch.sort(x, -1, True)
    return v, e

# check: M=3, N=7
def k_largest(x):
    v, e = torch.topk(x, 3, -1)
    return v, e

# check: M=3, N=7
def k_log_sum_exp(x):
    return torch.logsumexp(x, -1)

# check: M=3, N=7
def k_norm(x):
    return torch.sqrt((x * x).sum(1))

# check: M=3, N=5
def k_product(x):
    return x.prod(1)

# check: B=2, H=2, S=3, T=4, D=5
def k_einsum(q, k):
    return torch.matmul(q, k.transpose(-2, -1))

# check: M=3, N=4
def k_outer(a, b):
    return torch.outer(a, b)

# check: V=50, N=4, D=3
def k_gathered(t, ids):
    return t[ids]

# check: N=3, D=4
def k_halves(x, w):
    return x[:, :w.size(0)] * torch.sigmoid(x[:, w.size(0):]) + w

# check: N=5, D=3
def k_shifted(x):
    return x[1:] - x[:-1]

# check: M=3, N=5
def k_numpy_style(x):
    return torch.softmax(x, 1)

# check: M=3, N=5
def k_jax_style(x):
    return (x - x.mean(-1, True)) * torch.rsqrt(x.var(-1, False, True) + 1e-6)

# check: M=3, N=5
def k_rms(x, w):
    return w * x * torch.rsqrt(x.pow(2).mean(-1, True) + 1e-6)

# check: N=9
def k_converted(x):
    return x.float() * 2

# check: N=9
def k_clamped(x):
    return torch.clamp(x, -0.5, 0.5) + torch.clamp_min(x, 0)

# check: M=2, N=3
def k_squeezed(x):
    return x.squeeze(1).exp()

# check: M=2, N=3
def k_expanded(x, z):
    return x + z

# check: B=2, S=3, D=4
def k_rotary(x, cos, sin):
    h = x.size(2) // 2
    x1 = x[:, :, :h]
    x2 = x[:, :, h:]
    return x * cos + torch.cat([-x2, x1], -1) * sin

# check: M=2, N=3
def k_range_loop(x):
    return x.sum(1)

# check: N=9
def k_python_max(x):
    return torch.clamp(x, 0, 1)
