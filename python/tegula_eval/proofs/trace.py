"""Takes PyTorch functions apart into instructions that prove/Reference.cpp evaluates.

The text is part of the program `tegula`, which runs it in a Python that has torch: it imports nothing of this package.
A line of JSON on standard input asks for one function at one set of shapes; the answer is a line on standard output.
What moves elements becomes a gather with its places written out, found by running the operation on numbers that
say where an element came from. What is left are maps, reductions, products, scans and sorts.
"""
import base64
import contextlib
import ctypes
import functools
import json
import math
import operator
import os
import sys

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten
DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
          "i32": torch.int32, "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool}
INTEGERS = {dtype: name for name, dtype in DTYPES.items() if not dtype.is_floating_point}
MOVES = {"view", "_unsafe_view", "reshape", "permute", "transpose", "t", "expand", "slice", "select", "unsqueeze", "squeeze",
         "alias", "clone", "detach", "cat", "stack", "split", "split_with_sizes", "chunk", "unbind", "flip", "roll", "repeat",
         "as_strided", "slice_scatter", "select_scatter", "diagonal", "diagonal_scatter", "tril", "triu", "unfold", "copy",
         "lift_fresh_copy", "contiguous", "unsafe_split", "diag_embed", "squeeze_", "narrow", "expand_as", "as_strided_scatter",
         "movedim", "_reshape_alias", "pixel_shuffle", "channel_shuffle", "reflection_pad2d", "replication_pad2d", "unsafe_chunk",
         "reflection_pad1d", "replication_pad1d", "upsample_nearest2d", "upsample_nearest1d"}
# As many products of a matrix product take as long as another element, as in prove/ProductSum.h.
PRODUCTS_OF_STEP = 8
# What takes a tensor's shape alone.
SHAPED = {"full_like", "zeros_like", "ones_like", "empty_like", "new_zeros", "new_ones", "new_full", "new_empty", "new_empty_strided"}
UNARY = {name: name for name in """neg abs exp log log1p expm1 exp2 log2 log10 sqrt rsqrt reciprocal sin cos tan tanh sinh cosh atan
         asin acos sigmoid erf floor ceil round trunc sign lgamma logical_not bitwise_not isnan isinf asinh acosh atanh relu""".split()}
BINARY = {name: name for name in """add sub mul div pow maximum minimum eq ne lt le gt ge logical_and logical_or logical_xor
          bitwise_and bitwise_or bitwise_xor atan2 fmod remainder floor_divide""".split()}
DECOMPOSED = [getattr(aten, name) for name in """_adaptive_avg_pool2d _fused_rms_norm _log_softmax _native_batch_norm_legit
              _native_batch_norm_legit_functional _native_batch_norm_legit_no_training _prelu_kernel _softmax addcdiv addcmul
              addmm addmv baddbmm binary_cross_entropy celu clamp_max clamp_min cumprod dot embedding full_like gelu glu
              hardshrink hardsigmoid hardswish hardtanh huber_loss index_select kl_div l1_loss leaky_relu lerp
              linalg_vector_norm linspace log_sigmoid_forward logaddexp masked_fill mse_loss mv
              native_batch_norm native_group_norm native_layer_norm new_full new_zeros nll_loss2d_forward nll_loss_forward
              norm ones_like prelu rms_norm rsub silu smooth_l1_loss soft_margin_loss softplus softshrink square std
              std_mean threshold lstm gru rnn_tanh rnn_relu unsqueeze_copy upsample_bilinear2d xlogy zeros_like""".split()]


def base_name(target):
    """Of aten.view_copy.default: view."""
    name = target._schema.name.split("::")[1] if hasattr(target, "_schema") else str(target)
    return name.removesuffix("_copy") if name != "_to_copy" else name


class Unknown(Exception):
    """What has no exact meaning here."""


class Refused(Exception):
    """The reference raised an exception at these shapes."""


class TooLarge(Exception):
    """The instructions have more elements than were asked for."""


class Torch:
    """`torch`, and where it lacks a name that TorchScript has, aten."""

    def __getattr__(self, name):
        return getattr(torch, name) if hasattr(torch, name) else getattr(aten, name)


class Recorder:
    """Instructions, and the tables of places that gathers name: many gathers have the same ones."""

    def __init__(self, most):
        self.program, self.tables, self.known, self.elements, self.most = [], [], {}, 0, most

    def emit(self, op, like, **fields):
        self.count(like.numel())
        self.program.append({"op": op, "shape": list(like.shape), "float": like.is_floating_point(),
                             "dtype": INTEGERS.get(like.dtype, "i64"), **fields})
        return len(self.program) - 1

    def count(self, elements):
        self.elements += elements
        if self.elements > self.most:
            raise TooLarge

    def constant(self, tensor):
        flat = tensor.detach().reshape(-1)
        if flat.numel() > 1 and bool((flat == flat[0]).all()):
            return self.emit("const", tensor, same=told(flat[0].item()))
        values = flat.to(torch.float64).tolist() if tensor.is_floating_point() else flat.to(torch.int64).tolist()
        return self.emit("const", tensor, values=[told(value) for value in values])

    def gather(self, sources, index, like, fill=0.0):
        """`index`: where elements are in the concatenation of the sources, from 1 on; 0 is the fill."""
        places = bytes_of(index.reshape(-1).to(torch.int32))
        if len(sources) == 1 and fill == 0.0:
            kept = self.program[sources[0]]
            if kept["shape"] == list(like.shape) and kept["float"] == like.is_floating_point() and places == in_order(like.numel()):
                return sources[0]
        table = self.known.get(places)
        if table is None:
            table = self.known[places] = len(self.tables)
            self.tables.append(base64.b64encode(places).decode())
        return self.emit("gather", like, **{"in": sources}, index=table, fill=told(fill))


def told(value):
    """A number as JSON has it."""
    return int(value) if isinstance(value, (bool, int)) else value if math.isfinite(value) else str(value)


@functools.lru_cache(256)
def in_order(count):
    return bytes_of(torch.arange(1, count + 1, dtype=torch.int32))


def bytes_of(tensor):
    tensor = tensor.contiguous()
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def tensors_in(values):
    """Tensors among an operation's arguments or results, which lists and tuples hold."""
    found = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += tensors_in(value)
    return found


def replaced(value, replace):
    """An argument with other tensors in it."""
    if isinstance(value, torch.Tensor):
        return replace(value)
    return type(value)(replaced(one, replace) for one in value) if type(value) in (list, tuple) else value


def numbered(tensors):
    """Tensors of int64 that say where elements stand, from 1 on."""
    result, start = [], 1
    for tensor in tensors:
        result.append(torch.arange(start, start + tensor.numel()).reshape(tensor.shape))
        start += tensor.numel()
    return result


class RecurrentParts(TorchFunctionMode):
    """Takes recurrent layers apart by functions of Python: those of C++ change what they made in place, out of sight."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", None)
        rule = recurrent_parts().get(name)
        if rule is None or not isinstance(args[3], bool):  # packed sequences have weights there
            return function(*args, **(kwargs or {}))
        found = rule(*args, **(kwargs or {}))
        # The rule of an LSTM may leave a dim of 1 in what is last; states are in the shapes of those that are first.
        first = args[1] if name == "lstm" else [args[1]]
        return (found[0], *(last.reshape(one.shape) for last, one in zip(found[1:], first)))


@functools.cache
def recurrent_parts():
    names = ("lstm", "gru", "rnn_tanh", "rnn_relu")
    rules = torch._decomp.get_decompositions([getattr(aten, name).input for name in names])
    return {name: rules[getattr(aten, name).input] for name in names}


class Tracer(TorchDispatchMode):
    """Sees each operation on tensors, once it has been made functional, and writes down what it does to elements."""

    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder
        self.ids = {}  # id of a tensor: its instruction
        self.random = {}  # id of a tensor: what drew it
        self.alive = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        rule = decompositions().get(function)
        if rule is not None:
            with self:
                out = rule(*args, **kwargs)
            if out is not NotImplemented:
                return out
        with self:
            out = function.decompose(*args, **kwargs)
        if out is not NotImplemented:
            return out
        out = function(*args, **kwargs)
        self.note(function, args, kwargs, out)
        return out

    def note(self, function, args, kwargs, out):
        given = tensors_in([*args, *kwargs.values()])
        drawn = [self.random[id(t)] for t in given if id(t) in self.random]
        if torch.Tag.nondeterministic_seeded in function.tags:
            drawn.append(base_name(function))
        if not drawn:
            return self.lower(function, args, kwargs, out, given)
        for one in torch.utils._pytree.tree_leaves(out):
            if not isinstance(one, torch.Tensor):
                raise Unknown(f"the reference draws random numbers (aten.{drawn[0]})")
            self.random[id(one)] = drawn[0]
            self.alive.append(one)

    def bind(self, tensor, number):
        self.ids[id(tensor)] = number
        self.alive.append(tensor)
        return number

    def of(self, value, like=None):
        """The instruction of a value, in the shape and kind of `like`."""
        if not isinstance(value, torch.Tensor):
            value = torch.tensor(value, dtype=like.dtype if like is not None and not isinstance(value, float) else
                                 torch.float64 if isinstance(value, float) else None)
        if id(value) in self.random:
            raise Unknown(f"the reference draws random numbers (aten.{self.random[id(value)]})")
        number = self.ids.get(id(value))
        if number is None:
            number = self.bind(value, self.recorder.constant(value))
        if like is None or value.shape == like.shape:
            return number
        index = numbered([value])[0].expand(like.shape)
        return self.recorder.gather([number], index, torch.empty(like.shape, dtype=value.dtype))

    def as_float(self, number):
        kept = self.recorder.program[number]
        if kept["float"]:
            return number
        return self.recorder.emit("map", torch.empty(kept["shape"]), fn="float", **{"in": [number]})

    def map(self, fn, out, *operands, floats=None):
        """Operands of a float result, or of comparisons with floats, are floats. Numbers are what the tensors' type holds."""
        if not any(isinstance(o, torch.Tensor) and o.dtype == torch.float64 for o in operands):
            operands = [float(torch.tensor(o, dtype=torch.float32)) if isinstance(o, float) else o for o in operands]
        like = [torch.empty(out.shape, dtype=o.dtype if isinstance(o, torch.Tensor) else torch.float64 if isinstance(o, float) else
                            torch.int64) for o in operands]
        numbers = [self.of(o, torch.empty(out.shape, dtype=l.dtype)) for o, l in zip(operands, like)]
        if floats is None:
            floats = out.is_floating_point() or any(l.is_floating_point() for l in like)
        if floats:
            numbers = [self.as_float(n) for n in numbers]
        return self.recorder.emit("map", out, fn=fn, **{"in": numbers})

    def combine(self, fn, like, *numbers):
        return self.recorder.emit("map", like, fn=fn, **{"in": list(numbers)})

    def lower(self, target, args, kwargs, out, tensors):
        name = base_name(target)
        is_map = isinstance(out, torch.Tensor) and out.is_floating_point() and (name in UNARY or name in BINARY)
        if not any(id(t) in self.ids for t in tensors) and not is_map:
            return  # a constant, until somebody uses it; cos(1) is no number that a float holds
        if name in SHAPED:
            return
        if getattr(self, "do_" + name, None):
            return getattr(self, "do_" + name)(out, *args, **kwargs)
        if name in MOVES:
            return self.move(target, args, kwargs, out, tensors)
        if name in UNARY:
            number = self.of(args[0])
            self.bind(out, self.combine(name, out, self.as_float(number) if out.is_floating_point() else number))
        elif name in BINARY:
            self.binary(name, args, kwargs, out)
        else:
            raise Unknown(f"the reference calls aten.{name}, which has no exact meaning here")

    def move(self, target, args, kwargs, out, tensors):
        places = dict(zip(map(id, tensors), numbered(tensors)))
        replace = lambda v: places[id(v)]
        name = base_name(target)
        if name.startswith(("upsample", "reflection", "replication")):
            replace = lambda v: places[id(v)].double()
        new_args = [replaced(value, replace) for value in args]
        found = target(*new_args, **{k: replaced(v, replace) for k, v in kwargs.items() if k != "dtype"})
        numbers = [self.of(t) for t in tensors]
        outs = out if isinstance(out, (tuple, list)) else [out]
        founds = found if isinstance(found, (tuple, list)) else [found]
        for one, index in zip(outs, founds):
            self.bind(one, self.recorder.gather(numbers, index.round().long(), one))

    def binary(self, name, args, kwargs, out):
        a, b = args[:2]
        alpha = kwargs.get("alpha", 1)
        mode = kwargs.get("rounding_mode")
        number = None
        if alpha != 1:
            scaled = torch.empty(out.shape, dtype=out.dtype)
            b_number = self.map("mul", scaled, b, float(alpha) if out.is_floating_point() else alpha)
            self.bind(scaled, b_number)
            b = scaled
        number = self.map(name, out, a, b)
        if mode:
            number = self.combine("floor" if mode == "floor" else "trunc", out, number)
        self.bind(out, number)

    # What is neither a move nor a map of elements.

    def do__to_copy(self, out, a, **kwargs):
        number = self.of(a)
        if out.is_floating_point() and not a.is_floating_point():
            number = self.as_float(number)
        elif a.is_floating_point() and not out.is_floating_point():
            number = self.combine("bool" if out.dtype == torch.bool else "trunc_int", out, number)
        elif out.dtype == torch.bool and a.dtype != torch.bool:
            number = self.combine("bool", out, number)
        elif not out.is_floating_point() and out.dtype != a.dtype:
            number = self.combine("trunc", out, number)  # an integer as it is, which wraps
        if out.dtype in (torch.float16, torch.bfloat16) and a.dtype != out.dtype:
            number = self.recorder.emit("map", out, fn="bf16" if out.dtype == torch.bfloat16 else "f16", **{"in": [number]})
        self.bind(out, number)

    def do_convert_element_type(self, out, a, dtype):
        self.do__to_copy(out, a)

    def do_where(self, out, c, a, b):
        numbers = [self.of(c, torch.empty(out.shape, dtype=torch.bool))]
        for value in (a, b):
            number = self.of(value, torch.empty(out.shape, dtype=value.dtype))
            numbers.append(self.as_float(number) if out.is_floating_point() else number)
        self.bind(out, self.combine("where", out, *numbers))

    def do_clamp(self, out, a, lo=None, hi=None):
        number = self.of(a)
        for fn, bound in (("maximum", lo), ("minimum", hi)):
            if bound is None:
                continue
            limit = torch.as_tensor(bound, dtype=out.dtype).expand(out.shape) if not isinstance(bound, torch.Tensor) else bound
            number = self.combine(fn, out, number, self.of(limit, out))
        self.bind(out, number)

    def rows(self, a, dim):
        """The tensor with the dims that are reduced last, and how many elements those have."""
        dims = list(range(a.dim())) if dim is None or dim == [] else [d % a.dim() for d in ([dim] if isinstance(dim, int) else dim)]
        kept = [d for d in range(a.dim()) if d not in dims]
        index = numbered([a])[0].permute(kept + dims)
        return self.recorder.gather([self.of(a)], index, torch.empty(index.shape, dtype=a.dtype)), math.prod(a.shape[d] for d in dims)

    def reduced(self, fn, out, a, dim):
        number, n = self.rows(a, dim)
        if out.is_floating_point():
            number = self.as_float(number)
        return self.recorder.emit("reduce", out, fn=fn, n=n, **{"in": [number]}), n

    def do_sum(self, out, a, dim=None, keepdim=False, **_):
        self.bind(out, self.reduced("sum", out, a, dim)[0])

    def do_prod(self, out, a, dim=None, keepdim=False, **_):
        self.bind(out, self.reduced("prod", out, a, dim)[0])

    def do_amax(self, out, a, dim=None, keepdim=False):
        self.bind(out, self.reduced("max", out, a, dim)[0])

    def do_amin(self, out, a, dim=None, keepdim=False):
        self.bind(out, self.reduced("min", out, a, dim)[0])

    def do_logsumexp(self, out, a, dim, keepdim=False):
        """As a whole: its parts ask for infinite maxima, which finite data have not."""
        self.bind(out, self.reduced("logsumexp", out, a, dim)[0])

    def do_any(self, out, a, dim=None, keepdim=False):
        self.bind(out, self.reduced("max", out, a, dim)[0])

    def do_all(self, out, a, dim=None, keepdim=False):
        self.bind(out, self.reduced("min", out, a, dim)[0])

    def do_mean(self, out, a, dim=None, keepdim=False, **_):
        number, n = self.reduced("sum", out, a, dim)
        divisor = self.recorder.constant(torch.full(out.shape, float(n), dtype=torch.float64))
        self.bind(out, self.combine("div", out, number, divisor))

    def variance(self, a, dim, correction, like):
        number, n = self.rows(a, dim)
        return self.recorder.emit("reduce", like, fn="var", n=n, correction=1 if correction is None else float(correction),
                                  **{"in": [self.as_float(number)]})

    def do_var(self, out, a, dim=None, correction=None, keepdim=False, **_):
        self.bind(out, self.variance(a, dim, correction, out))

    def do_var_mean(self, out, a, dim=None, correction=None, keepdim=False, **_):
        self.bind(out[0], self.variance(a, dim, correction, out[0]))
        self.do_mean(out[1], a, dim)

    def do_argmax(self, out, a, dim=None, keepdim=False):
        self.bind(out, self.reduced("argmax", out, a, dim)[0])

    def do_argmin(self, out, a, dim=None, keepdim=False):
        self.bind(out, self.reduced("argmin", out, a, dim)[0])

    def do_max(self, out, a, dim=None, keepdim=False):
        if dim is None:
            return self.do_amax(out, a)
        self.do_amax(out[0], a, dim)
        self.do_argmax(out[1], a, dim)

    def do_min(self, out, a, dim=None, keepdim=False):
        if dim is None:
            return self.do_amin(out, a)
        self.do_amin(out[0], a, dim)
        self.do_argmin(out[1], a, dim)

    def back(self, number, a, dim, out):
        """From rows with `dim` last to the tensor's own order."""
        dims = [d for d in range(a.dim()) if d != dim % a.dim()] + [dim % a.dim()]
        shape = [a.shape[d] for d in dims[:-1]] + [out.shape[dim % a.dim()]]
        index = torch.arange(1, math.prod(shape) + 1).reshape(shape).permute(sorted(range(len(dims)), key=dims.__getitem__))
        return self.recorder.gather([number], index, out)

    def scan(self, fn, out, a, dim):
        number, n = self.rows(a, dim)
        if out.is_floating_point():
            number = self.as_float(number)
        shape = self.recorder.program[number]["shape"]
        scanned = self.recorder.emit("scan", torch.empty(shape, dtype=out.dtype), fn=fn, n=n, **{"in": [number]})
        self.bind(out, self.back(scanned, a, dim, out))

    def do_cumsum(self, out, a, dim, **_):
        self.scan("sum", out, a, dim)

    def do_cumprod(self, out, a, dim, **_):
        self.scan("prod", out, a, dim)

    def do_cummax(self, out, a, dim):
        self.scan("max", out[0], a, dim)

    def do_cummin(self, out, a, dim):
        self.scan("min", out[0], a, dim)

    def sorted(self, out, a, dim, descending, take):
        number, n = self.rows(a, dim)
        shape = self.recorder.program[number]["shape"][:-1] + [take]
        for one, fn in ((out[0], "value"), (out[1], "place")):
            found = self.recorder.emit("sort", torch.empty(shape, dtype=one.dtype), fn=fn, n=n, take=take, descending=descending,
                                       **{"in": [number]})
            self.bind(one, self.back(found, a, dim, one))

    def do_sort(self, out, a, *args, dim=-1, descending=False, stable=None):
        if args and isinstance(args[0], int) and not isinstance(args[0], bool):
            dim, descending = args[0], args[1] if len(args) > 1 else descending
        self.sorted(out, a, dim, bool(descending), a.shape[dim])

    def do_topk(self, out, a, k, dim=-1, largest=True, sorted=True):
        self.sorted(out, a, dim, largest, k)

    def product(self, out, a, b, batch, m, k, n):
        self.recorder.count(batch * m * k * n // PRODUCTS_OF_STEP)
        return self.recorder.emit("bmm", out, b=batch, m=m, k=k, n=n, **{"in": [self.as_float(a), self.as_float(b)]})

    def do_mm(self, out, a, b):
        self.bind(out, self.product(out, self.of(a), self.of(b), 1, a.shape[0], a.shape[1], b.shape[1]))

    def do_bmm(self, out, a, b):
        self.bind(out, self.product(out, self.of(a), self.of(b), a.shape[0], a.shape[1], a.shape[2], b.shape[2]))

    def windows(self, index, sizes, stride, dilation):
        for k, (size, step, apart) in enumerate(zip(sizes, stride, dilation)):
            index = index.unfold(2 + k, apart * (size - 1) + 1, step)[..., ::apart]
        return index  # [N, C, out..., size...]

    def do_convolution(self, out, x, w, bias, stride, padding, dilation, transposed, output_padding, groups):
        rank = x.dim() - 2
        every = lambda v: list(v) * rank if len(v) == 1 else list(v)
        stride, padding, dilation, output_padding = every(stride), every(padding), every(dilation), every(output_padding)
        xi, wi = numbered([x])[0], numbered([w])[0]
        sizes = list(w.shape[2:])
        if transposed:
            wide = torch.zeros(list(xi.shape[:2]) + [(s - 1) * st + 1 for s, st in zip(xi.shape[2:], stride)], dtype=torch.int64)
            wide[(slice(None), slice(None), *[slice(None, None, st) for st in stride])] = xi
            pads = [(d * (k - 1) - p, d * (k - 1) - p + o) for d, k, p, o in zip(dilation, sizes, padding, output_padding)]
            xi, stride = wide, [1] * rank
            wi = wi.reshape([groups, w.shape[0] // groups] + list(w.shape[1:])).transpose(1, 2).flip(list(range(3, 3 + rank)))
            wi = wi.reshape([-1] + list(wi.shape[2:]))
        else:
            pads = [(p, p) for p in padding]
        xi = torch.constant_pad_nd(xi, [p for pair in reversed(pads) for p in pair])
        xi = self.windows(xi, sizes, stride, dilation)
        batch, channels, outs = xi.shape[0], xi.shape[1] // groups, list(xi.shape[2: 2 + rank])
        xi = xi.reshape([batch, groups, channels] + outs + sizes)
        order = [1, 2] + list(range(3 + rank, 3 + 2 * rank)) + [0] + list(range(3, 3 + rank))
        k, n = channels * math.prod(sizes), batch * math.prod(outs)
        xi = xi.permute(order).reshape(groups, k, n)
        m = wi.shape[0] // groups
        wi = wi.reshape(groups, m, k)
        kind = torch.empty(0, dtype=x.dtype)
        right = self.recorder.gather([self.of(x)], xi, kind.new_empty(xi.shape))
        left = self.recorder.gather([self.of(w)], wi, kind.new_empty(wi.shape))
        number = self.product(kind.new_empty((groups, m, n)), left, right, groups, m, k, n)
        index = torch.arange(1, groups * m * n + 1).reshape([groups, m, batch] + outs)
        index = index.permute([2, 0, 1] + list(range(3, 3 + rank))).reshape(out.shape)
        number = self.recorder.gather([number], index, out)
        if bias is not None:
            spread = numbered([bias])[0].reshape([1, -1] + [1] * rank).expand(out.shape)
            number = self.combine("add", out, number, self.recorder.gather([self.of(bias)], spread, out))
        self.bind(out, number)

    def pooled(self, out, x, size, stride, padding, dilation, fill):
        rank = len(size)
        xi = numbered([x])[0]
        xi = xi.reshape([-1, 1] + list(x.shape[-rank:]))
        shape = list(out.shape[-rank:])
        more = [max(0, (o - 1) * s + d * (k - 1) + 1 - n - p) for o, s, d, k, n, p in
                zip(shape, stride, dilation, size, x.shape[-rank:], padding)]
        xi = torch.constant_pad_nd(xi, [p for pair in reversed(list(zip(padding, more))) for p in pair])
        xi = self.windows(xi, size, stride, dilation)
        xi = xi[(slice(None), slice(None), *[slice(0, o) for o in shape])].reshape(list(out.shape) + [math.prod(size)])
        return self.recorder.gather([self.of(x)], xi, torch.empty(xi.shape, dtype=x.dtype), fill), math.prod(size)

    def do_max_pool2d_with_indices(self, out, x, size, stride=(), padding=(0,), dilation=(1,), ceil_mode=False):
        rank = len(size)
        every = lambda v: list(v) * rank if len(v) == 1 else list(v)
        number, n = self.pooled(out[0], x, list(size), every(stride) or list(size), every(padding), every(dilation), -math.inf)
        self.bind(out[0], self.recorder.emit("reduce", out[0], fn="max", n=n, **{"in": [number]}))

    do_max_pool3d_with_indices = do_max_pool2d_with_indices

    def do_avg_pool2d(self, out, x, size, stride=(), padding=(0,), ceil_mode=False, count_include_pad=True, divisor=None):
        rank = len(size)
        every = lambda v: list(v) * rank if len(v) == 1 else list(v)
        number, n = self.pooled(out, x, list(size), every(stride) or list(size), every(padding), [1] * rank, 0.0)
        number = self.recorder.emit("reduce", out, fn="sum", n=n, **{"in": [number]})
        pool = getattr(torch.nn.functional, f"avg_pool{rank}d")
        args = (list(size), list(stride) or None, list(padding), ceil_mode)
        # Of ones the pool is the share of the divisor that is inside.
        share = pool(torch.ones_like(x, dtype=torch.float64), *args, count_include_pad, *([divisor] if rank > 1 else []))
        inside = pool(torch.ones_like(x, dtype=torch.float64), *args, True, *([1] if rank > 1 else []))
        if rank == 1:
            inside = inside * size[0]
        self.bind(out, self.combine("div", out, number, self.recorder.constant((inside / share).round())))

    do_avg_pool3d = do_avg_pool2d
    do_avg_pool1d = do_avg_pool2d

    def taken(self, out, source, linear):
        """Elements of a tensor at places that are data."""
        return self.recorder.emit("take", out, **{"in": [self.of(source), linear]})

    def places(self, source, indices, shape):
        """The row-major places, from 0 on, of source[..., index, ...] for the index tensors that are there."""
        base = torch.arange(source.numel()).reshape(source.shape)
        total, rest = None, []
        for d, index in enumerate(indices):
            if index is None:
                rest.append(d)
        fixed = base[tuple(slice(None) if i is None else torch.zeros_like(i) for i in indices)]
        total = self.recorder.constant(fixed.reshape(shape))
        whole = torch.empty(shape, dtype=torch.int64)
        for d, index in enumerate(indices):
            if index is None:
                continue
            if index.dtype == torch.bool:
                raise Unknown("the reference selects by a mask")
            stride = math.prod(source.shape[d + 1:])
            spread = numbered([index])[0]
            spots = tuple(slice(None) if i is None else torch.zeros_like(i) for i in indices)
            # Where each result's index stands in the index tensor.
            at = self.spread(source, indices, spread.expand(torch.broadcast_shapes(*[i.shape for i in indices if i is not None])))
            number = self.recorder.gather([self.of(index)], at.reshape(shape), whole)
            size = self.recorder.constant(torch.full(shape, source.shape[d], dtype=torch.int64))
            number = self.combine("remainder", whole, number, size)  # negative ones count from the end
            step = self.recorder.constant(torch.full(shape, stride, dtype=torch.int64))
            total = self.combine("add", whole, total, self.combine("mul", whole, number, step))
        return total

    @staticmethod
    def spread(source, indices, positions):
        """`positions`, in the shape of source[indices]."""
        firsts = [d for d, i in enumerate(indices) if i is not None]
        after = [source.shape[d] for d in range(source.dim()) if d >= len(indices) or indices[d] is None]
        is_together = firsts == list(range(firsts[0], firsts[-1] + 1))
        lead = firsts[0] if is_together else 0
        shape = after[:lead] + list(positions.shape) + after[lead:]
        view = [1] * lead + list(positions.shape) + [1] * (len(after) - lead)
        return positions.reshape(view).expand(shape)

    def do_index(self, out, a, indices):
        self.bind(out, self.taken(out, a, self.places(a, list(indices), out.shape)))

    def along(self, a, dim, index):
        """Places of a.gather(dim, index)."""
        dim %= a.dim()
        base = torch.arange(a.numel()).reshape(a.shape)
        start = base.select(dim, 0).unsqueeze(dim)
        start = start[tuple(slice(0, s) if d != dim else slice(None) for d, s in enumerate(index.shape))].expand(index.shape)
        stride = math.prod(a.shape[dim + 1:])
        step = self.recorder.constant(torch.full(index.shape, stride, dtype=torch.int64))
        whole = torch.empty(index.shape, dtype=torch.int64)
        return self.combine("add", whole, self.recorder.constant(start), self.combine("mul", whole, self.of(index), step))

    def do_gather(self, out, a, dim, index, **_):
        self.bind(out, self.taken(out, a, self.along(a, dim, index)))

    def put(self, out, a, places, values, fn):
        number = self.of(values) if isinstance(values, torch.Tensor) else values
        self.bind(out, self.recorder.emit("put", out, fn=fn, **{"in": [self.of(a), places, number]}))

    def do_scatter(self, out, a, dim, index, value, **_):
        if not isinstance(value, torch.Tensor):
            value = torch.full(index.shape, value, dtype=a.dtype)
        self.put(out, a, self.along(a, dim, index), value[tuple(slice(0, s) for s in index.shape)], "set")

    def do_scatter_add(self, out, a, dim, index, value):
        self.put(out, a, self.along(a, dim, index), value, "add")

    def do_index_put(self, out, a, indices, values, accumulate=False):
        shape = a[tuple(slice(None) if i is None else torch.zeros_like(i) for i in indices)].shape
        places = self.places(a, list(indices), shape)
        self.put(out, a, places, self.of(values, torch.empty(shape, dtype=values.dtype)), "add" if accumulate else "set")

    def do_index_add(self, out, a, dim, index, source, alpha=1):
        indices = [None] * (dim % a.dim()) + [index]
        self.put(out, a, self.places(a, indices, source.shape), source, "add")

    def do_elu(self, out, a, alpha=1, scale=1, input_scale=1):
        """With its numbers apart: a decomposition rounds their product, which for selu is another number."""
        inner = a if input_scale == 1 else self.bound(out, self.map("mul", out, a, float(input_scale)))
        scaled = self.map("mul", out, self.bound(out, self.combine("expm1", out, self.of(inner))), float(alpha))
        positive = self.map("gt", torch.empty(out.shape, dtype=torch.bool), a, 0.0)
        chosen = self.combine("where", out, positive, self.of(a), scaled)
        self.bind(out, chosen if scale == 1 else self.map("mul", out, self.bound(out, chosen), float(scale)))

    def do_mish(self, out, a):
        """As PyTorch computes it: the softplus in it has no threshold."""
        number = self.of(a)
        for fn in ("exp", "log1p", "tanh"):
            number = self.combine(fn, out, number)
        self.bind(out, self.combine("mul", out, self.of(a), number))

    def bound(self, like, number):
        """A tensor that stands for an instruction."""
        tensor = torch.empty(like.shape, dtype=like.dtype)
        self.bind(tensor, number)
        return tensor

    def do_fill(self, out, a, value):
        self.bind(out, self.of(torch.full(out.shape, value, dtype=out.dtype)))

    def do_constant_pad_nd(self, out, a, pad, value=0):
        index = torch.constant_pad_nd(numbered([a])[0], pad)
        self.bind(out, self.recorder.gather([self.of(a)], index, out, float(value)))


class Undrawn(TorchFunctionMode):
    """Leaves large parameters as they are allocated where a constructor draws them, which takes seconds for a large network.
    `holds` says whether that makes no difference: nothing has read such a parameter, and all of them are given."""

    LEAST = 1 << 16  # elements
    DRAWS = ("uniform_", "normal_")  # ends of names, also of those of torch.nn.init
    # What does not depend on values.
    SHAPES = {getattr(torch.Tensor, name).__get__ for name in
              ("shape", "dtype", "device", "layout", "requires_grad", "is_leaf", "is_cuda", "is_meta", "is_sparse", "ndim")} | {
              getattr(torch.Tensor, name) for name in
              ("size", "dim", "numel", "stride", "is_floating_point", "is_complex", "is_contiguous", "__len__")}

    def __init__(self):
        super().__init__()
        self.left, self.is_read = {}, False

    def __torch_function__(self, function, types, args=(), kwargs=None):
        first = args[0] if args else (kwargs or {}).get("tensor")
        if getattr(function, "__name__", "").endswith(self.DRAWS) and isinstance(first, torch.nn.Parameter) and first.numel() >= self.LEAST:
            self.left[id(first)] = first
            return first
        if self.left and function not in self.SHAPES:
            given = tensors_in([*args, *(kwargs or {}).values()])
            self.is_read |= any(id(one) in self.left or id(getattr(one, "_base", None)) in self.left for one in given)
        return function(*args, **(kwargs or {}))

    def holds(self, model, names):
        """`names`: of the parameters that are given."""
        kept = {name: one for name, one in model.named_parameters()}
        return not self.is_read and set(self.left) <= {id(one) for name, one in kept.items() if name in names}


spaces = {}


def run_module(text, path):
    """What a text defines that ends with a module as a function. Its parameters are drawn where they count."""
    for undrawn in (Undrawn(), contextlib.nullcontext()):
        space = {"__name__": "reference", "__file__": path}
        with undrawn:
            exec(compile(text, path, "exec"), space)
        if isinstance(undrawn, Undrawn) and "_model" in space and undrawn.holds(space["_model"], space.get("_given", ())):
            break
    return space


def load(path, kernel):
    if path not in spaces:
        space = {"__name__": "reference", "__file__": path}
        text = open(path).read()
        if "class Model" in text:
            space = run_module(text, path)
        else:
            import typing
            space.update({name: getattr(typing, name) for name in ("List", "Tuple", "Optional", "Dict")}, torch=Torch(), math=math)
            lines = ["" if line.startswith(("import ", "from ")) else line for line in text.splitlines()]
            exec(compile("\n".join(lines), path, "exec"), space)
        spaces[path] = space
    space = spaces[path]
    functions = {k: v for k, v in space.items() if callable(v) and getattr(v, "__module__", None) == "reference"}
    if "Model" in functions:  # a module, and a function that calls it
        return functions.get("ref")
    return functions.get(kernel) or functions.get("ref") or (list(functions.values())[0] if len(functions) == 1 else None)


@contextlib.contextmanager
def without_onednn():
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


def warm():
    """Loads what the first trace loads, which takes seconds."""
    with Tracer(Recorder(math.inf)):
        torch.func.functionalize(lambda x: torch.nn.functional.batch_norm(x + 1, None, None, training=True), remove="mutations")(
            torch.ones(2, 3))


@functools.cache
def decompositions():
    table = {**torch._decomp.core_aten_decompositions(), **torch._decomp.get_decompositions(DECOMPOSED)}
    kept = {aten.convolution.default, aten.logsumexp.default, aten.max_pool2d_with_indices.default, aten.elu.default, aten.mish.default}
    return {op: rule for op, rule in table.items() if op not in kept}


def trace(asked):
    torch.manual_seed(asked["seed"])
    function = load(asked["path"], asked["kernel"])
    if function is None:
        raise Unknown(f"'{asked['path']}' has no function '{asked['kernel']}' or 'ref'")
    wanted = function.__code__.co_varnames[: function.__code__.co_argcount]
    given = {one["name"]: one for one in asked["arguments"]}
    names, tensors, fixed = [], [], {}
    for name in wanted:
        one = given.get(name)
        if one is None:
            raise Unknown(f"the reference's parameter '{name}' is none of the kernel's")
        if "shape" not in one:
            fixed[name] = one["value"]
            continue
        dtype = DTYPES.get(one["dtype"])
        if dtype is None:
            raise Unknown(f"'{name}' is of type {one['dtype']}, which PyTorch's operations here do not take")
        names.append(name)
        tensor = torch.rand(one["shape"]).to(dtype) if dtype.is_floating_point else torch.zeros(one["shape"], dtype=dtype)
        tensors.append(tensor)

    def call(*values):
        return function(**dict(zip(names, values)), **fixed)

    recorder = Recorder(asked["most"])
    tracer = Tracer(recorder)
    for name, tensor in zip(names, tensors):
        tracer.bind(tensor, recorder.emit("input", tensor, name=name))
    # oneDNN's operators and fused attention have no parts.
    with torch.no_grad(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH), without_onednn():
        try:
            with tracer, RecurrentParts():
                results = torch.func.functionalize(call, remove="mutations")(*tensors)
        except (Unknown, TooLarge):
            raise
        except Exception as error:
            text = str(error).splitlines()[0] if str(error) else ""
            raise Refused(f"the reference raised {type(error).__name__}: {text}") from error
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        return {"program": recorder.program, "tables": recorder.tables, "outputs": [tracer.of(one) for one in results]}


def answer(line):
    """The answer to a line, as a line."""
    try:
        found = trace(json.loads(line))
    except Unknown as error:
        found = {"error": str(error).splitlines()[0]}
    except Refused as error:
        found = {"refused": str(error)}
    except TooLarge:
        found = {"large": True}
    except Exception as error:  # whatever the reference raises is told, with its kind
        found = {"error": f"the reference raised {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
    return json.dumps(found) + "\n"


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a module prints is no answer
    for line in sys.stdin:
        answers.write(answer(line))
        answers.flush()


if __name__ == "__main__":
    main()
