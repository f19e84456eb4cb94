"""Convolutions, sampling and losses of pictures."""
import torch
import torch.nn.functional as F

from .suite import Case, kernel


@kernel(dict(N=64, C=256, H=28, W=28, O=256), dict(N=2, C=5, H=6, W=7, O=4), tolerance=2e-2)
def conv2d_bf16_3x3(data, N, C, H, W, O):
    """A convolution with bias and ReLU, channels before rows."""
    def eager(x, w, b):
        return F.relu(F.conv2d(x, w, b, padding=1))

    def channels_last():
        x, w = (tensors[name].to(memory_format=torch.channels_last) for name in "xw")
        return lambda: F.relu(F.conv2d(x, w, tensors["b"], padding=1))
    tensors = dict(x=data.normal(N, C, H, W), w=data.normal(O, C, 3, 3, scale=0.02), b=data.normal(O))
    return Case(tensors, eager, bytes=N*H*W*(C + O)*2, operations=dict(bf16=2*N*H*W*C*O*9),
                peers={"channels last": channels_last})


@kernel(dict(N=64, C=128, H=56, W=56), dict(N=2, C=5, H=9, W=8), tolerance=2e-2)
def depthwise_7x7(data, N, C, H, W):
    """ConvNeXt's depthwise convolution."""
    def eager(x, w, b):
        return F.conv2d(x, w[:, None], b, padding=3, groups=C)
    tensors = dict(x=data.normal(N, C, H, W), w=data.normal(C, 7, 7, scale=0.1), b=data.normal(C))
    return Case(tensors, eager, bytes=N*C*H*W*4, operations=dict(f32=2*N*C*H*W*49))


@kernel(dict(N=8, C=64, H=256, W=256), dict(N=2, C=3, H=9, W=8), tolerance=1e-3)
def grid_sample_bilinear(data, N, C, H, W):
    """Values between pixels, at places that data gives."""
    def eager(x, gx, gy):
        return F.grid_sample(x, torch.stack((gx*2/(W - 1) - 1, gy*2/(H - 1) - 1), -1), align_corners=True)
    tensors = dict(x=data.floats(N, C, H, W), gx=data.uniform(N, H, W, high=W - 1), gy=data.uniform(N, H, W, high=H - 1))
    return Case(tensors, eager, bytes=N*C*H*W*8 + N*H*W*8)


@kernel(dict(N=64, H=224, W=224, P=16, D=768), dict(N=2, H=8, W=12, P=4, D=10), tolerance=2e-2)
def patch_embedding(data, N, H, W, P, D):
    """A vision transformer's patches times a matrix."""
    def eager(x, w, b):
        return F.conv2d(x, w, b, stride=P).flatten(2).transpose(1, 2)
    tensors = dict(x=data.normal(N, 3, H, W), w=data.normal(D, 3, P, P, scale=0.05), b=data.normal(D))
    return Case(tensors, eager, bytes=N*3*H*W*2 + N*H*W//P//P*D*2, operations=dict(bf16=2*N*H*W*3*D))


@kernel(dict(N=16, H=512, W=512), dict(N=2, H=13, W=12), tolerance=1e-3)
def ssim_11(data, N, H, W):
    """Structural similarity with a window of 11 x 11."""
    def eager(x, y, w):
        def mean(z):
            return F.conv2d(z[:, None], w[None, None])[:, 0]
        mx, my = mean(x), mean(y)
        vx, vy, c = mean(x*x) - mx*mx, mean(y*y) - my*my, mean(x*y) - mx*my
        return ((2*mx*my + 1e-4)*(2*c + 9e-4)/((mx*mx + my*my + 1e-4)*(vx + vy + 9e-4))).mean()
    g = torch.exp(-(torch.arange(11, device=data.device) - 5.0)**2/4.5)
    tensors = dict(x=data.uniform(N, H, W), y=data.uniform(N, H, W), w=torch.outer(g, g)/g.sum()**2)
    return Case(tensors, eager, bytes=N*H*W*8, operations=dict(f32=N*H*W*121*8))


@kernel(dict(N=4, C=64, T=16, H=56, W=56, O=64), dict(N=2, C=3, T=4, H=5, W=6, O=4), tolerance=2e-2)
def conv3d_bf16_3x3x3(data, N, C, T, H, W, O):
    """A convolution of videos."""
    def eager(x, w):
        return F.conv3d(x, w, padding=1)
    tensors = dict(x=data.normal(N, C, T, H, W), w=data.normal(O, C, 3, 3, 3, scale=0.02))
    return Case(tensors, eager, bytes=N*T*H*W*(C + O)*2, operations=dict(bf16=2*N*T*H*W*C*O*27))


@kernel(dict(N=32, C=128, H=56, W=56), dict(N=2, C=3, H=6, W=8), compiled=False)
def max_pool_backward(data, N, C, H, W):
    """Gradients of windows of 3 x 3 at every second pixel go to where the largest element was."""
    def eager(dy, place):
        P, Q = dy.shape[2:]
        dx = torch.zeros(N, C, H*W, device=dy.device, dtype=dy.dtype)
        return dx.scatter_add_(2, place.view(N, C, P*Q), dy.view(N, C, P*Q)).view(N, C, H, W)
    x = data.floats(N, C, H, W)
    y, place = F.max_pool2d(x, 3, 2, 1, return_indices=True)
    return Case(dict(dy=data.floats(*y.shape), place=place), eager, bytes=N*C*H*W*4 + y.numel()*12,
                constants={"H": str(H), "W": str(W)})


@kernel(dict(N=64, H=1024, W=1024), dict(N=2, H=9, W=8), tolerance=1e-4)
def summed_area(data, N, H, W):
    """Sums of all above and to the left."""
    return Case(dict(x=data.floats(N, H, W)), lambda x: x.cumsum(2).cumsum(1), bytes=N*H*W*8)
