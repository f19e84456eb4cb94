# check: N=1
# check: N=1003
# check: N=1003, T=f64
# check: N=103, T=bf16
# input: x = uniform(-1, 1)
def t_inverse(x):
    return torch.asin(x), torch.acos(x), torch.atanh(x), torch.erfinv(x), torch.acosh(1 + torch.abs(x))

# check: N=1
# check: N=1003
# check: N=1003, T=f64
# check: N=103, T=f16
# input: x = normal(0, 4)
def t_everywhere(x, y):
    return torch.atan(x), torch.atan2(x, y), torch.sinh(x), torch.cosh(x), torch.asinh(x), torch.erfc(x), torch.log10(torch.abs(x))

# check: N=1
# check: N=1003
# input: x = normal(0, 6)
def t_lgamma(x):
    return torch.lgamma(x)

# check: N=1
# check: N=1003
# input: x = normal(0, 6)
def t_digamma(x):
    inf = float("inf")
    s = torch.where(x > 1.5, inf, torch.where(x < -1.5, -inf, torch.where(torch.abs(x) < 0.2, float("nan"), torch.where(torch.abs(x) < 0.4, 0 * x, x))))
    return torch.digamma(x), torch.digamma(s)

# check: N=1003
def t_special(x, y):
    inf = float("inf")
    s = torch.where(x > 1.5, inf, torch.where(x < -1.5, -inf, torch.where(torch.abs(x) < 0.2, float("nan"), torch.where(torch.abs(x) < 0.4, 0 * x, x))))
    t = torch.where(y > 1.5, inf, torch.where(y < -1.5, -inf, torch.where(torch.abs(y) < 0.2, float("nan"), torch.where(torch.abs(y) < 0.4, 0 * y, y))))
    return torch.atan2(s, t), torch.copysign(s, t), torch.hypot(s, t), torch.logaddexp(s, t), torch.fmax(s, t), torch.fmin(s, t), torch.heaviside(s, t), torch.xlogy(s, t)

# check: N=1003
def t_special_one(x):
    inf = float("inf")
    s = torch.where(x > 1.5, inf, torch.where(x < -1.5, -inf, torch.where(torch.abs(x) < 0.2, float("nan"), torch.where(torch.abs(x) < 0.4, 0 * x, x))))
    return torch.atan(s), torch.lgamma(s), torch.erfc(s), torch.sinh(s), torch.asinh(s), torch.special_entr(s), torch.special_ndtr(s), torch.cosh(s)

# check: N=1003
def t_tests(x):
    inf = float("inf")
    s = torch.where(x > 1.5, inf, torch.where(x < -1.5, -inf, torch.where(torch.abs(x) < 0.2, float("nan"), torch.where(torch.abs(x) < 0.4, 0 * x, x))))
    return torch.isfinite(s), torch.signbit(torch.nan_to_num(s, 1.0)) | (torch.isnan(s) & torch.signbit(s)), torch.isposinf(s), torch.isneginf(s)

# check: N=1
# check: N=1003
# check: N=1003, T=f64
# input: x = normal(0, 100)
def t_remainders(x, y):
    return torch.fmod(x, y), torch.remainder(x, y), torch.logaddexp2(x, y)

# check: N=1003
def t_integers(x, y):
    return torch.fmod(x - 2, y + 1), torch.remainder(x - 2, y + 1), torch.atan(x), torch.atan2(x - 1, y - 1)

# check: N=1
# check: N=1003
# check: N=1003, T=f64
# input: x = uniform(0, 1)
def t_one_line(x, y, z):
    return torch.logit(x, 0.01), torch.sigmoid(y), torch.frac(8 * y), torch.deg2rad(y) + torch.rad2deg(y), torch.sinc(y), torch.lerp(y, z, x), torch.addcmul(x, y, z, value=0.5), torch.addcdiv(x, y, 1 + torch.abs(z))

# check: N=1
# check: N=1003
# check: N=1003, T=f64
# input: x = normal(0, 8)
def t_log_ndtr(x):
    return torch.special_log_ndtr(x)

# check: N=1003
# check: N=1003, T=f64
def t_nan_to_num(x):
    inf = float("inf")
    s = torch.where(x > 1.5, inf, torch.where(x < -1.5, -inf, torch.where(torch.abs(x) < 0.2, float("nan"), x)))
    return torch.nan_to_num(s), torch.nan_to_num(s, 2.0, 3.0, -4.0)

# check: N=37
def t_largest(x, y, z):
    s, t = torch.where(x > 0, 1.0, -1.0), torch.where(y > 0, 1.0, -1.0)
    half, brain, single = s * 65504.0, t * 3.3895313892515355e38, s * 3.4028234663852886e38
    return half, brain, single + t * 65504.0, torch.where(x > 0, 5.0, half), t * 1.7976931348623157e308, z
