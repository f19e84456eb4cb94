# check: ...=(1,), L=1
# check: ...=(3,), L=5
# check: ...=(2, 3), L=5
# check: ...=(3,), L=33, T=f16
# bench: ...=(2048), L=1024
# bench: ...=(2048), L=1024, T=bf16
def t_layer_norm1(x, w, b):
    return torch.layer_norm(x, w.size(), w, b, 1e-5)

# check: ...=(1,), L=1
# check: ...=(3,), L=5
# bench: ...=(2048), L=1024
def t_rms_norm1(x, w):
    return torch.rms_norm(x, w.size(), w, 1e-4)

# check: ...=(1,), L=1, M=1
# check: ...=(3,), L=5, M=3
# check: ...=(2, 3), L=5, M=3
# bench: ...=(256), L=64, M=128
def t_layer_norm2(x, w, b):
    return torch.layer_norm(x, w.size(), w, b, 1e-5)

# check: ...=(1,), L=1, M=1
# check: ...=(3,), L=5, M=3
# bench: ...=(256), L=64, M=128
def t_rms_norm2(x, w):
    return torch.rms_norm(x, w.size(), w, 1e-4)

# check: ...=(1,), L=1, M=1, N=1
# check: ...=(3,), L=5, M=3, N=4
# check: ...=(2, 3), L=5, M=3, N=4
# bench: ...=(32), L=64, M=32, N=32
def t_layer_norm3(x, w, b):
    return torch.layer_norm(x, w.size(), w, b, 1e-5)

# check: ...=(1,), L=1, M=1, N=1
# check: ...=(3,), L=5, M=3, N=4
# bench: ...=(32), L=64, M=32, N=32
def t_rms_norm3(x, w):
    return torch.rms_norm(x, w.size(), w, 1e-4)

# check: ...=(1,), L=1, M=1, N=1, O=1
# check: ...=(3,), L=5, M=3, N=4, O=7
# check: ...=(2, 3), L=5, M=3, N=4, O=7
# bench: ...=(32), L=8, M=8, N=32, O=32
def t_layer_norm4(x, w, b):
    return torch.layer_norm(x, w.size(), w, b, 1e-5)

# check: ...=(1,), L=1, M=1, N=1, O=1
# check: ...=(3,), L=5, M=3, N=4, O=7
# bench: ...=(32), L=8, M=8, N=32, O=32
def t_rms_norm4(x, w):
    return torch.rms_norm(x, w.size(), w, 1e-4)

# check: M=3, N=17
# bench: M=2048, N=1024
def t_layer_norm_plain(x):
    return torch.layer_norm(x, [x.size(1)])

# check: N=1, C=2, ...=(3,)
# check: N=2, C=6, ...=(3, 5), G=3
# check: N=2, C=6, ...=(3, 5, 2), G=6
# check: N=2, C=4, ...=(7,), T=bf16
# bench: N=8, C=64, ...=(56, 56), G=8
def t_group_norm(x, w, b, G: int):
    return torch.group_norm(x, G, w, b)

# check: N=1, C=1, ...=(3,)
# check: N=2, C=3, ...=(5, 7)
# bench: N=8, C=64, ...=(56, 56)
def t_instance_norm(x, w, b):
    return torch.instance_norm(x, w, b, None, None, True, 0.0, 1e-5, False)

# check: N=2, C=3, H=4, W=5
# bench: N=8, C=64, H=56, W=56
# input: v = uniform(0.5, 2)
def t_instance_norm_running(x, m, v):
    return torch.instance_norm(x, None, None, m, v, False, 0.0, 1e-5, False)

# check: N=1, C=1, ...=(1,)
# check: N=3, C=5, ...=(3, 7)
# check: N=3, C=5, ...=()
# bench: N=8, C=64, ...=(56, 56)
# input: v = uniform(0.5, 2)
def t_batch_norm(x, m, v, w, b):
    return torch.batch_norm(x, w, b, m, v, False, 0.1, 1e-5, False)

# check: N=3, C=5, ...=(3, 7)
# bench: N=8, C=64, ...=(56, 56)
# input: v = uniform(0.5, 2)
def t_batch_norm_training(x):
    return torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)

# check: N=2, C=1, L=1
# check: N=3, C=5, L=3
# bench: N=512, C=64, L=64
def t_batch_norm1d(x, w, b):
    return torch.batch_norm(x, w, b, None, None, True, 0.1, 1e-4, False)

# check: N=2, C=1, H=1, W=1
# check: N=3, C=5, H=3, W=4
# bench: N=8, C=64, H=56, W=56
def t_batch_norm2d(x, w, b):
    return torch.batch_norm(x, w, b, None, None, True, 0.1, 1e-4, False)

# check: N=2, C=1, D=1, H=1, W=1
# check: N=3, C=5, D=3, H=4, W=2
# bench: N=4, C=32, D=8, H=32, W=32
def t_batch_norm3d(x, w, b):
    return torch.batch_norm(x, w, b, None, None, True, 0.1, 1e-4, False)

# check: N=1, C=1, H=1, W=1
# check: N=2, C=7, H=3, W=4
# check: N=2, C=7, H=3, W=4, size=4
# bench: N=8, C=64, H=56, W=56
def t_local_response_norm(x, size: int):
    s = torch.pad((x * x).unsqueeze(1), [0, 0, 0, 0, size // 2, (size - 1) // 2])
    m = torch.avg_pool3d(s, [size, 1, 1], [1, 1, 1]).squeeze(1)
    return x / torch.pow(m * 1e-4 + 1.0, 0.75)
