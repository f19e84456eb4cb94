"""Integers as numpy and Python compute them: unsigned types, bits, powers, scalars of every type."""

import numpy as np
import pytest

import tegula

RNG = np.random.default_rng(7)


def run(text, *arguments, **options):
    return tegula.compile(text)(*arguments, **options)


def words(dtype, count=1000):
    return RNG.integers(0, np.iinfo(dtype).max, count, dtype=dtype, endpoint=True)


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_unsigned_arithmetic(dtype):
    t = "u32" if dtype is np.uint32 else "u64"
    text = f"""kernel k(a: {t}[N], b: {t}[N]) -> (s: {t}[N], d: {t}[N], p: {t}[N], q: {t}[N], r: {t}[N], h: {t}[N], g: {t}[N],
        m: {t}[N], c: bool[N], f: f64[N], n: {t}[N]) {{
      s[i] = a[i] + b[i]
      d[i] = a[i] - b[i]
      p[i] = a[i]*b[i]
      q[i] = a[i] // (b[i] >> 7)
      r[i] = a[i] % (b[i] >> 7)
      h[i] = a[i] >> 3 ^ b[i] << 5
      g[i] = ~a[i] & b[i] | 5
      m[i] = minimum(a[i], maximum(b[i], 1000))
      c[i] = a[i] < b[i]
      f[i] = f64(a[i])
      n[i] = -a[i]
    }}"""
    a, b = words(dtype), words(dtype)
    b[0], b[1] = 0, 5  # divisors of 0 give 0
    got = run(text, a, b)
    over = b >> dtype(7)
    safe = np.where(over == 0, 1, over).astype(dtype)
    zero = dtype(0)
    wanted = (a + b, a - b, a * b, np.where(over == 0, zero, a // safe), np.where(over == 0, zero, a % safe),
              a >> dtype(3) ^ b << dtype(5), ~a & b | dtype(5), np.minimum(a, np.maximum(b, dtype(1000))), a < b,
              a.astype(np.float64), zero - a)
    for one, other in zip(got, wanted):
        assert one.dtype == other.dtype and np.array_equal(one, other)


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.uint64])
def test_unsigned_orders(dtype):
    t = np.dtype(dtype).name.replace("uint", "u")
    wide = "i32" if t == "u16" else t
    text = f"""kernel k(x: {t}[M, N]) -> (a: {wide}[M], b: {wide}[M], p: i64[M], s: {t}[M, N], o: i64[M, N], c: {t}[M, N], v: {t}[M, 3],
        e: i64[M, 3], f: {t}[M, 2]) {{
      a[i] = max(x[i, j] for j)
      b[i] = min(x[i, j] for j if j % 2 == 0)
      p[i] = argmax(x[i, j] for j)
      s[i, j] = sort(x[i, j], over=j)
      o[i, j] = argsort(x[i, j], over=j, descending=true)
      c[i, j] = cummax(x[i, j], over=j)
      v[i, r], e[i, r] = topk(x[i, j] for j, k=3)
      f[i, r], g[i, r] = topk(x[i, j] for j if j > 0, k=2)
    }}"""
    x = words(dtype, 3 * 40).reshape(3, 40)
    a, b, p, s, o, c, v, e, f = run(text, x)
    order = np.argsort(~x, axis=1, kind="stable")
    assert np.array_equal(a, x.max(1)) and np.array_equal(b, x[:, ::2].min(1)) and np.array_equal(p, x.argmax(1))
    assert np.array_equal(s, np.sort(x, axis=1)) and np.array_equal(o, order)
    assert np.array_equal(c, np.maximum.accumulate(x, axis=1))
    assert np.array_equal(e, order[:, :3]) and np.array_equal(v, np.take_along_axis(x, order[:, :3], 1))
    assert np.array_equal(f, np.sort(x[:, 1:], axis=1)[:, ::-1][:, :2])


def test_hash():
    """splitmix64 and a multiplicative hash, as they stand in C."""
    text = """kernel k(s: u64[N], w: u32[N]) -> (h: u64[N], y: u32[N], u: f32[N]) {
      z[i] = s[i] + 0x9E3779B97F4A7C15
      a[i] = (z[i] ^ z[i] >> 30) * 0xBF58476D1CE4E5B9
      b[i] = (a[i] ^ a[i] >> 27) * 0x94D049BB133111EB
      h[i] = b[i] ^ b[i] >> 31
      y[i] = (w[i] ^ w[i] >> 16) * 0x45d9f3b
      u[i] = f32(h[i] >> 40) * 5.9604644775390625e-8
    }"""
    s, w = words(np.uint64), words(np.uint32)
    h, y, u = run(text, s, w)
    z = s + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    z = z ^ z >> np.uint64(31)
    assert np.array_equal(h, z) and np.array_equal(y, (w ^ w >> np.uint32(16)) * np.uint32(0x45d9f3b))
    assert np.array_equal(u, (z >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24))


def test_unsigned_conversions():
    text = """kernel k(x: i64[N], f: f64[N], u: u64[N], w: u32[N]) -> (a: u16[N], b: u32[N], c: u64[N], d: u32[N], e: u64[N], g: f32[N],
        h: i32[N], m: i64[N], q: u8[N], s: u32[N]) {
      a[i] = x[i]
      b[i] = u32(x[i])
      c[i] = u64(x[i])
      d[i] = u32(f[i])
      e[i] = u64(f[i])
      g[i] = f32(u[i])
      h[i] = i32(u[i])
      m[i] = w[i] - x[i]
      q[i] = quantize(u[i] >> 50, u8)
      s[i] = quantize(x[i], u32)
    }"""
    x = RNG.integers(-2**40, 2**40, 500)
    f = RNG.uniform(-1e10, 3e19, 500)
    f[:4] = [-1, np.nan, np.inf, 2.0**63]
    u, w = words(np.uint64, 500), words(np.uint32, 500)
    a, b, c, d, e, g, h, m, q, s = run(text, x, f, u, w)
    whole = [0 if np.isnan(v) else int(min(max(v, 0.0), 1e30)) for v in f]
    assert np.array_equal(a, x.astype(np.uint16)) and np.array_equal(b, x.astype(np.uint32))
    assert np.array_equal(c, x.astype(np.uint64)) and np.array_equal(h, u.astype(np.int32))
    assert d.tolist() == [min(v, 2**32 - 1) for v in whole] and e.tolist() == [min(v, 2**64 - 1) for v in whole]
    assert np.array_equal(g, u.astype(np.float32)) and np.array_equal(m, w.astype(np.int64) - x)
    assert q.tolist() == [min(int(v) >> 50, 255) for v in u]
    assert s.tolist() == [min(max(int(v), 0), 2**32 - 1) for v in x]


@pytest.mark.parametrize("name, low, high", [("i8", -128, 127), ("u8", 0, 255), ("i16", -2**15, 2**15 - 1), ("u16", 0, 2**16 - 1),
                                             ("i4", -8, 7), ("u4", 0, 15), ("i32", -2**31, 2**31 - 1), ("u32", 0, 2**32 - 1),
                                             ("i64", -2**63, 2**63 - 1), ("u64", 0, 2**64 - 1)])
def test_integer_scalars(name, low, high):
    to = "u64" if name == "u64" else "i64"
    kernel = tegula.compile(f"kernel k(x: f32[N], s: {name}) -> (y: {to}[N]) {{ y[i] = s }}")
    x = np.zeros(2, np.float32)
    for value in (low, high, 1):
        assert kernel(x, value).tolist() == [value, value]
    for value in (low - 1, high + 1):
        with pytest.raises(tegula.LaunchError, match=f"'s' is {name}"):
            kernel(x, value)


@pytest.mark.parametrize("name, given, kept, too_large", [("f16", 0.1, 0.0999755859375, 70000.0), ("bf16", 0.1, 0.10009765625, 3.4e38),
                                                          ("f8e4m3", 0.1, 0.1015625, 500.0), ("f32", 0.1, float(np.float32(0.1)), 1e39)])
def test_float_scalars(name, given, kept, too_large):
    kernel = tegula.compile(f"kernel k(x: f32[N], s: {name}) -> (y: f64[N]) {{ y[i] = f64(s) }}")
    x = np.zeros(1, np.float32)
    assert kernel(x, given)[0] == kept
    with pytest.raises(tegula.LaunchError, match=f"'s' is {name}"):
        kernel(x, too_large)
    if name != "f8e4m3":
        assert kernel(x, float("inf"))[0] == float("inf")


def test_float_constants():
    kernel = tegula.compile("kernel k(x: f32[N], e: float) -> (y: f32[N]) { y[i] = x[i] + e }")
    x = np.zeros(1, np.float32)
    assert kernel(x, e=float("inf"))[0] == float("inf") and np.isnan(kernel(x, e=float("nan"))[0])
