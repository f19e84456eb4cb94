"""The tables of bench/gpu_figures.py: what their rows are, what a row shows, and what makes one wrong."""
import pathlib
from typing import Callable, Iterable, NamedTuple

from .measure import text_of

MATMUL = "linear/matmul.tgl"
ONLINE, CAUSAL = "attention/online_attention.tgl", "attention/causal_attention.tgl"
F32_ERROR = 4e-7  # is right however small the other side's is: a few roundings


class Section(NamedTuple):
    columns: list[str]
    cases: Callable[[], Iterable[tuple]]  # the row's name, and what `row` takes besides
    row: Callable[..., tuple[list[str], bool]]  # of a Measure and a case: what stands beside the name, and whether that is right


def sizes_of(*sizes):
    return "x".join(map(str, sizes if len(set(sizes)) > 1 else sizes[:1]))


def tflops(work, microseconds):
    return f"{work / microseconds / 1e6:.0f}"


def listed(numbers, form):
    """Cells of what there is of them."""
    return [format(number, form) if number is not None else "" for number in numbers]


def both(ours, theirs):
    return f"{ours:.1e}, {theirs:.1e}"


def product_case(T, B, M, N, K):
    return f"{T} {f'{B} of ' if B else ''}{sizes_of(M, N, K)}", T, B, M, N, K


def products():
    for T in "bf16", "f16":
        for size in 2048, 4096, 8192:
            yield product_case(T, None, size, size, size)
    for M, N, K in (8205, 5921, 2949), (256, 256, 131072), (16, 4096, 4096), (128, 4096, 4096):
        yield product_case("bf16", None, M, N, K)
    yield product_case("bf16", 128, 512, 1024, 2048)
    for T in "f8", "i8":
        for size in 2048, 4096, 8192:
            yield product_case(T, None, size, size, size)


def uneven():
    """Products whose tiles are no multiple of the multiprocessors."""
    for size in 1536, 2560, 3072, 5120, 6144:
        yield product_case("bf16", None, size, size, size)
    for M, N, K in (1024, 1024, 4096), (512, 4096, 4096), (2304, 4096, 4096), (4096, 1152, 4096), (2048, 11008, 4096):
        yield product_case("bf16", None, M, N, K)
    for size in 3072, 5120:
        yield product_case("f8", None, size, size, size)


def f32():
    for size in 256, 512, 1024, 2048, 4096, 8192:
        yield product_case("f32", None, size, size, size)
    yield product_case("f32", None, 256, 256, 524288)


def tf32():
    for size in 2048, 4096:
        yield product_case("tf32", None, size, size, size)


def product_row(measure, name, T, B, M, N, K):
    (ours, theirs), (error, other), alone = measure.product(T, B, M, N, K)
    work = 2 * (B or 1) * M * N * K
    rates = [f"{tflops(work, alone[0])}, {tflops(work, alone[1])}", f"{alone[1] / alone[0]:.2f}"] if alone else ["", ""]
    return ([f"{ours:.1f}", f"{theirs:.1f}", tflops(work, ours), f"{theirs / ours:.2f}", *rates, both(error, other)],
            error <= max(1.1 * other, F32_ERROR if T == "f32" else 0))


def accuracy():
    for kind in "signed", "positive", "wide range", "cancelling", "other units", "large beside zeros":
        for M, N, K in (1024, 1024, 1024), (2048, 2048, 4096), (256, 256, 65536), (256, 256, 524288):
            yield f"{kind} {M}x{N}x{K}", kind, M, N, K


def errors_of_kind(errors):
    """The cells, and whether no error is larger than torch's."""
    (whole, worst), (other, other_worst) = errors
    return ([both(whole, other), both(worst, other_worst)],
            whole <= max(1.1 * other, F32_ERROR) and worst <= max(1.1 * other_worst, F32_ERROR))


def accuracy_row(measure, name, kind, M, N, K):
    return errors_of_kind(measure.f32_product(kind, M, N, K, timed=False)[1])


def wide():
    for M, N, K in (4096, 4096, 4096), (2048, 2048, 2048), (128, 4096, 4096):
        yield f"f32 {sizes_of(M, N, K)}", M, N, K


def wide_row(measure, name, M, N, K):
    (ours, theirs), errors = measure.f32_product("other units", M, N, K, timed=True)
    cells, right = errors_of_kind(errors)
    return [f"{ours:.1f}", f"{theirs:.1f}", tflops(2 * M * N * K, ours), f"{theirs / ours:.2f}", *cells], right


def attention():
    for T in "bf16", "f16":
        for D, H in (64, 16), (128, 16), (256, 8), (512, 8), (1024, 4):
            for B, S in (8, 1024), (2, 4096), (1, 16384):
                for causal in False, True:
                    yield f"{T} {D} {B}x{S}{' causal' if causal else ''}", T, B, H, S, D, causal


def attention_row(measure, name, T, B, H, S, D, causal):
    (ours, *theirs), difference = measure.attention(CAUSAL if causal else ONLINE, T, B, H, S, D, causal)
    best = min((taken for taken in theirs if taken), default=None)
    ratio = f"{best / ours:.2f}" if best else ""
    return ([f"{ours:.0f}", *listed(theirs, ".0f"), tflops(4 * B * H * S * S * D, ours), ratio, f"{difference:.1e}"],
            difference < {"bf16": 1e-2, "f16": 2e-3}[T])


def equations():
    for D, H, B, S, causal in [(64, 16, 8, 1024, False), (64, 16, 2, 4096, True), (96, 8, 16, 512, True), (32, 4, 2, 16384, False),
                               (64, 8, 4, 1000, False), (128, 8, 8, 1024, False)]:
        text = ("kernel attention(q: f32[B, H, S, D], k: f32[B, H, T, D], v: f32[B, H, T, D]) -> (o: f32[B, H, S, D]) {\n"
                f"  o = scaled_dot_product_attention(q, k, v{', is_causal=true' if causal else ''})\n}}\n")
        yield f"f32 {D} {B}x{S}{' causal' if causal else ''}, {H} heads", text, ["EFFICIENT_ATTENTION"], B, H, S, D, causal


def f32_attention():
    for causal in True, False:
        for D in 64, 96, 112, 120, 128:
            yield (f"f32 {D} 2x4096{' causal' if causal else ''}, 8 heads", text_of(CAUSAL if causal else ONLINE, "f32"),
                   ["EFFICIENT_ATTENTION", "MATH"], 2, 8, 4096, D, causal)


def f32_attention_row(measure, name, text, backends, B, H, S, D, causal):
    (ours, *theirs), (error, *others) = measure.f32_attention(text, backends, B, H, S, D, causal)
    best, other = min((taken, off) for taken, off in zip(theirs, others) if taken)
    return ([f"{ours:.0f}", *listed(theirs, ".0f"), tflops(4 * B * H * S * S * D, ours), f"{best / ours:.2f}", both(error, other)],
            error <= max(1.1 * other, F32_ERROR))


def grouped():
    for T, N, K, M, E, spread in [
            ("bf16", 8192, 2048, 4096, 8, "even"), ("bf16", 8192, 2048, 4096, 8, "uneven"), ("bf16", 8192, 2048, 4096, 8, "one"),
            ("bf16", 4096, 1024, 1024, 64, "even"), ("bf16", 512, 2048, 4096, 8, "even"), ("bf16", 16384, 4096, 1536, 128, "even"),
            ("f16", 8192, 2048, 4096, 8, "even"), ("f32", 8192, 2048, 4096, 8, "even")]:
        yield f"{T} {N}x{K}x{M}, {E} matrices, {spread}", T, N, K, M, E, spread


def grouped_row(measure, name, T, N, K, M, E, spread):
    (ours, *theirs), error = measure.grouped(T, N, K, M, E, spread)
    best = theirs[0] or theirs[2]
    return ([f"{ours:.0f}", *listed(theirs, ".0f"), tflops(2 * N * K * M, ours), f"{best / ours:.2f}", f"{error:.1e}"],
            error < {"bf16": 1e-2, "f16": 2e-3, "f32": 1e-6}[T])


def memory():
    """Each program's text, torch's call, how often it moves its input's bytes, and the shapes of the input x."""
    for kind, text, theirs, passes, shapes in [
            ("sum over dim 0", "kernel sums(x: f32[M, N]) -> (y: f32[N]) { y[j] = sum(x[i, j] for i) }",
             lambda torch, x: torch.sum(x, 0), 1,
             [(16384, 2048), (4096, 4096), (65536, 1024), (1000000, 64), (100000, 512), (16000, 512), (1024, 65536), (8192, 8192),
              (16384, 2047), (10007, 2048), (512, 4096), (128, 1000000)]),
            ("cumsum over dim 1", "kernel rows(x: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = cumsum(x[i, j], over=j) }",
             lambda torch, x: torch.cumsum(x, 1), 2,
             [(1, 100000000), (1, 1000000), (1, 65536), (8, 4194304), (64, 1048576), (256, 65536), (300, 100003), (4096, 8192)]),
            ("cumsum over dim 0", "kernel columns(x: f32[M, N]) -> (y: f32[M, N]) { y[i, j] = cumsum(x[i, j], over=i) }",
             lambda torch, x: torch.cumsum(x, 0), 2,
             [(100000, 64), (16384, 2048), (1000000, 16), (1024, 65536), (4096, 131072), (4099, 1023)]),
            ("argmax over dim 1", "kernel places(x: f32[M, N]) -> (y: i64[M]) { y[i] = argmax(x[i, j] for j) }",
             lambda torch, x: torch.argmax(x, 1), 1, [(1, 100000000), (4, 8000000), (64, 1000003), (4096, 65536)])]:
        for shape in shapes:
            yield f"{kind} {shape[0]}x{shape[1]}", text, theirs, passes, shape


def memory_row(measure, name, text, theirs, passes, shape):
    (ours, other), error, same = measure.along(text, theirs, shape)
    share = passes * 4 * shape[0] * shape[1] / ours / 4.1e6
    return ([f"{ours:.1f}", f"{other:.1f}", f"{other / ours:.2f}", f"{share:.2f}",
             f"{error:.1e}{'' if same else ', not the same twice'}"], same and error < 1e-4)


def small():
    for file, sizes in [("softmax/softmax.tgl", "M=256,N=1024"), ("softmax/softmax.tgl", "M=1024,N=512"),
                        ("norm/layer_norm.tgl", "M=512,N=768"), ("norm/rms_norm.tgl", "M=512,N=1024"),
                        ("pointwise/gelu_tanh.tgl", "...=(256, 512)"), ("scan/cumsum.tgl", "M=128,N=1024"),
                        ("loss/cross_entropy.tgl", "B=128,C=1000"), ("reduce/sum_columns.tgl", "M=512,N=512"),
                        ("linear/linear_gelu.tgl", "M=64,K=512,N=512"), (MATMUL, "M=256,N=256,K=256")]:
        yield f"{pathlib.Path(file).stem} {sizes}", file, sizes


def small_row(measure, name, file, sizes):
    """`tegula bench` has held the results against the reference."""
    (ours, theirs), errors, ratio = measure.graphs(file, sizes)
    return [f"{ours:.3g}", f"{theirs:.3g}", f"{ratio:.2f}", both(*errors)], True


def compiled():
    for file in (MATMUL, "linear/linear_gelu.tgl", "conv/conv2d_relu.tgl", ONLINE, CAUSAL, "softmax/softmax.tgl",
                 "norm/layer_norm.tgl"):
        yield pathlib.Path(file).stem, file


def compiled_row(measure, name, file):
    return listed(measure.compile_times(file), ".0f"), True


PRODUCT = ["product", "ours, us", "torch, us", "TFLOP/s", "ratio", "alone, TFLOP/s", "ratio", "error, torch's"]
SECTIONS = {
    "products": Section(PRODUCT, products, product_row),
    "uneven": Section(PRODUCT, uneven, product_row),
    "f32": Section(PRODUCT, f32, product_row),
    "tf32": Section(PRODUCT, tf32, product_row),
    "accuracy": Section(["data and product", "error, torch's", "worst element, torch's"], accuracy, accuracy_row),
    "wide": Section(["product", "ours, us", "cuBLAS, us", "TFLOP/s", "ratio", "error, cuBLAS's", "worst element, cuBLAS's"],
                    wide, wide_row),
    "attention": Section(["attention", "ours, us", "cuDNN, us", "flash, us", "efficient, us", "TFLOP/s", "ratio", "differs by"],
                         attention, attention_row),
    "f32attention": Section(["case", "ours, us", "efficient, us", "math, us", "TFLOP/s", "ratio", "error, PyTorch's"],
                            f32_attention, f32_attention_row),
    "equations": Section(["case", "ours, us", "efficient, us", "TFLOP/s", "ratio", "error, PyTorch's"],
                         equations, f32_attention_row),
    "grouped": Section(["case", "ours, us", "_grouped_mm with sort, us", "without, us", "loop, us", "TFLOP/s", "ratio", "error"],
                       grouped, grouped_row),
    "memory": Section(["case", "ours, us", "torch, us", "ratio", "of 4.1 TB/s", "error"], memory, memory_row),
    "small": Section(["case", "ours, us", "libtorch, us", "ratio", "error, libtorch's"], small, small_row),
    "compile": Section(["program", "a process, ms", "by the library, ms"], compiled, compiled_row),
}
