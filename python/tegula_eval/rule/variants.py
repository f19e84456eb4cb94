"""The same task at other sizes.

A task's sizes are integers that its file names at module level (`batch_size = 64`, `D, H, W = 16, 32, 32`,
`shape = (64, 64)`) or writes inside `get_inputs`. A variant is the same text with some of them replaced.
Which replacements make sense is not written anywhere, so they are tried: a variant counts where the module
still builds and runs. That is found out on torch's meta device, which computes shapes alone; only a module
that does not run there is run for real, which the caller's memory limit and deadline must bound.

`smaller` halves sizes, the largest first, until the task's cost is within a budget; `ragged` then makes the
sizes of inputs odd or prime where the module allows it. Numbers that change no shape (heads, groups, a
padding) are touched only together with a size that needs them smaller.
"""
from __future__ import annotations

import ast
import logging
import math
import time
from dataclasses import dataclass

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

# torch warns of a missing triton here, which counts no operator of ours.
logging.getLogger("torch.utils.flop_counter").setLevel(logging.ERROR)
from torch.utils.flop_counter import flop_registry  # noqa: E402

from .tasks import TaskError, load


# What a variant may cost where nothing can be made smaller any more.
HARD_BYTES, HARD_FLOPS = 1 << 31, 1 << 37


@dataclass(frozen=True)
class Cost:
    bytes: int    # of inputs, parameters and everything that the operators give
    flops: int    # of products
    depth: float  # terms added up for one element of the result, all layers together
    shapes: tuple  # of inputs and parameters
    form: tuple = ()  # what must be the same in every variant: names and ranks of parameters, ranks of inputs


class Measure(TorchDispatchMode):
    """Adds up what the operators of a forward pass write, multiply and sum."""

    def __init__(self):
        super().__init__()
        self.bytes = self.flops = 0
        self.depth = 1.0
        self.is_empty = False  # an operator gives nothing: on the meta device a window larger than its image does

    def __torch_dispatch__(self, function, types_, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if function.is_view:
            return result
        outs = [one for one in tree_flatten(result)[0] if isinstance(one, torch.Tensor)]
        ins = [one for one in tree_flatten((args, kwargs))[0] if isinstance(one, torch.Tensor)]
        self.bytes += sum(one.numel() * one.element_size() for one in outs)
        count = max((one.numel() for one in outs), default=0)
        if not count:
            self.is_empty |= bool(outs)
            return result
        packet = function.overloadpacket
        if packet in flop_registry:
            flops = flop_registry[packet](*args, **(kwargs or {}), out_val=result)
            self.flops += flops
            self.depth += flops / (2 * count)
            return result
        # A reduction gives fewer elements than it takes; norms and scans give statistics beside as many.
        least = min(one.numel() for one in outs if one.numel()) if outs else count
        most = max((one.numel() for one in ins), default=0)
        if "softmax" in str(packet) or "cumsum" in str(packet) or "cumprod" in str(packet):
            self.depth += max(ins[0].shape, default=1)
        elif most > least and ("norm" in str(packet) or most > count):
            self.depth += most / least
        return result


@dataclass
class Built:
    module: object
    model: torch.nn.Module
    init: object  # list or dict
    inputs: list


def build(source: str, name: str = "task") -> Built:
    """Runs the task's file and makes its module and inputs. Raises TaskError."""
    seed = torch.initial_seed()
    module = load(source, name)
    _seed_again(seed)
    try:
        init = module.get_init_inputs()
        model = module.Model(**init) if isinstance(init, dict) else module.Model(*init)
        _seed_again(seed)
        inputs = list(module.get_inputs())
    except MemoryError:
        raise
    except Exception as error:
        if isinstance(error, RuntimeError) and "allocate" in str(error):
            raise MemoryError(str(error)) from error
        raise TaskError(f"module or inputs cannot be made: {type(error).__name__}: {error}") from error
    return Built(module, model, init, inputs)


def _seed_again(seed: int) -> None:
    """Where the task's text has set another one: numbers are drawn from the judge's."""
    if torch.initial_seed() != seed:
        torch.manual_seed(seed)


def build_on(source: str, device: str | torch.device) -> Built:
    """Builds the task on the device, numbers drawn there; or, where its text wants them on the CPU, moves it there.
    Raises TaskError."""
    try:
        with torch.device(device):
            built = build(source)
    except TaskError:
        built = build(source)
    built.model.to(device)
    built.inputs = tree_map(lambda one: one.to(device) if isinstance(one, torch.Tensor) else one, built.inputs)
    return built


def state_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Copies of all parameters and buffers, also of those buffers that a state dict leaves out."""
    return {name: value.detach().clone() for name, value in
            {**model.state_dict(), **dict(model.named_buffers())}.items()}


def measure(source: str, how: str = "meta") -> Cost:
    """Builds and runs the task. Raises whatever the task raises.

    `how`: "meta", all of it on the device that computes shapes alone; "moved", made on the CPU, then moved there
    (constructors that read numbers out of tensors); "cpu", for real.
    """
    with torch.device("meta" if how == "meta" else "cpu"), torch.no_grad():
        built = build(source)
    if how == "moved":
        built.model.to("meta")
        built.inputs = tree_map(lambda one: one.to("meta") if isinstance(one, torch.Tensor) else one, built.inputs)
    counted = Measure()
    with torch.device("cpu" if how == "cpu" else "meta"), torch.no_grad(), counted:
        built.model(*built.inputs)
    tensors = [one for one in tree_flatten(built.inputs)[0] if isinstance(one, torch.Tensor)]
    state = state_of(built.model)
    held = [*tensors, *state.values()]
    shapes = tuple(tuple(one.shape) for one in held)
    if any(0 in shape for shape in shapes):
        raise TaskError("a size is zero")
    return Cost(sum(one.numel() * one.element_size() for one in held) + counted.bytes, counted.flops, counted.depth,
                shapes, _form(built, counted.is_empty and how != "cpu"))


def _form(built: Built, is_empty: bool = False) -> tuple:
    return (is_empty, tuple((name, value.dim()) for name, value in state_of(built.model).items()),
            tuple(one.dim() if isinstance(one, torch.Tensor) else None for one in tree_flatten(built.inputs)[0]))


def _folded(node: ast.expr) -> int | None:
    """The integer that `4096 * 2` stands for."""
    if any(not isinstance(part, (ast.Constant, ast.BinOp, ast.operator)) for part in ast.walk(node)):
        return None
    if any(isinstance(part, ast.Pow) for part in ast.walk(node)):
        return None
    try:
        value = eval(compile(ast.Expression(node), "size", "eval"), {"__builtins__": {}})
    except (ArithmeticError, TypeError, ValueError):
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


class _Fold(ast.NodeTransformer):
    def __init__(self, sizes):
        self.sizes = sizes

    def generic_visit(self, node):
        if isinstance(node, (ast.Constant, ast.BinOp)):
            value = _folded(node)
            if value is not None:
                constant = ast.copy_location(ast.Constant(value), node)
                self.sizes.append(constant)
                return constant
        return super().generic_visit(node)

    visit_Constant = visit_BinOp = generic_visit


class Sizes:
    """A task's text with its sizes as places that can be set."""

    def __init__(self, source: str):
        try:
            self.tree = ast.parse(source)
        except (SyntaxError, ValueError) as error:
            raise TaskError(f"not Python: {error}") from error
        self.places: list[ast.Constant] = []
        for node in self.tree.body:
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
                node.value = _Fold(self.places).visit(node.value)
            elif isinstance(node, ast.FunctionDef) and node.name == "get_inputs":
                for call in ast.walk(node):
                    if isinstance(call, ast.Call):
                        call.args = [_Fold(self.places).visit(one) if _folded(one) is not None else one
                                     for one in call.args]
        self.places = [place for index, place in enumerate(self.places)
                       if all(place is not other for other in self.places[:index])]

    def values(self) -> tuple[int, ...]:
        return tuple(place.value for place in self.places)

    def set(self, values: tuple[int, ...]) -> None:
        for place, value in zip(self.places, values):
            place.value = value

    def text(self, values: tuple[int, ...]) -> str:
        old = self.values()
        self.set(values)
        text = ast.unparse(ast.fix_missing_locations(self.tree))
        self.set(old)
        return text


@dataclass(frozen=True)
class Variant:
    name: str
    source: str
    cost: Cost
    changed: str  # `64 -> 7, 512 -> 33`


class Search:
    """Tries sizes; remembers what it tried."""

    def __init__(self, source: str):
        self.sizes = Sizes(source)
        self.original = self.sizes.values()
        self.how = "meta"
        self.tried: dict[tuple[int, ...], Cost | None] = {}
        for how in ("meta", "moved"):
            try:
                started = time.monotonic()
                self.how, self.cost = how, measure(source, how)
                self.is_slow = time.monotonic() - started > 0.5
                self.form = self.cost.form
                return
            except MemoryError:
                raise
            except Exception as error:
                self.why = f"{type(error).__name__}: {error}"
        # Forward computes with values (`.item()`, a mask that selects): shapes alone do not do.
        self.how, self.cost, self.is_slow = "cpu", None, True
        self.form = _form(build(source))  # where even that fails, the task is at fault

    def probe(self, values: tuple[int, ...]) -> Cost | None:
        if values not in self.tried:
            try:
                cost = measure(self.sizes.text(values), self.how)
            except Exception:  # whatever a module raises means that these sizes do not suit it
                cost = None
            # Another number of layers is another module, for which a program has no parameters.
            self.tried[values] = cost if cost is not None and cost.form == self.form else None
        return self.tried[values]

    def variant(self, name: str, values: tuple[int, ...], cost: Cost) -> Variant:
        changed = ", ".join(f"{old} -> {new}" for old, new in zip(self.original, values) if old != new)
        return Variant(name, self.sizes.text(values), cost, changed)

    def smaller(self, max_bytes: int, max_flops: int, start: tuple[int, ...] | None = None, grows: bool = True):
        """Sizes within the budget as (values, cost), or None. Where there are none, the least ones are those, or where
        `grows`, some above them."""
        def excess(cost: Cost) -> float:
            return max(cost.bytes / max_bytes, cost.flops / max_flops)

        values, cost = start or self.original, None
        if self.is_slow and not start:  # long loops, or computed for real: not one size after another
            for by in (16, 4):
                values = tuple(max(value // by, min(value, 2)) if value >= 32 else value for value in self.original)
                cost = self.probe(values)
                if cost is not None:
                    break
        if cost is None and (self.how != "cpu" or start):
            values = start or self.original
            cost = self.probe(values)
        if cost is None:
            return None
        while excess(cost) > 1:
            step = self._halve(values, cost, excess)
            if step is None and not grows:
                return values, cost
            if step is None:
                return self._above(cost, max_bytes, max_flops, start)
            values, cost = step
        return values, cost

    def _above(self, least: Cost, max_bytes: int, max_flops: int, start):
        """`least` is as small as it gets: what is left is fixed, such as the layers of a known network. Images of
        one pixel say little about them, so that the budget is what lets sizes be more than the least."""
        if least.bytes > HARD_BYTES or least.flops > HARD_FLOPS:
            return None
        max_bytes = max(max_bytes, least.bytes, min(max(4 * least.bytes, 1 << 26), 1 << 28))
        max_flops = max(max_flops, least.flops, min(max(8 * least.flops, 1 << 30), 1 << 31))
        found = self.smaller(max_bytes, max_flops, start)
        return found and self._grow(*found, max_bytes, max_flops)

    def _grow(self, values: tuple[int, ...], cost: Cost, max_bytes: int, max_flops: int):
        """Takes back what was halved too far, the most first."""
        top = self.original
        while True:
            for place in sorted(range(len(values)), key=lambda place: values[place] / max(top[place], 1)):
                if values[place] * 2 > top[place]:
                    continue
                new = values[:place] + (values[place] * 2,) + values[place + 1:]
                found = self.probe(new)
                if found is not None and found.shapes != cost.shapes and \
                        found.bytes <= max_bytes and found.flops <= max_flops:
                    values, cost = new, found
                    break
            else:
                return values, cost

    def _halve(self, values, cost, excess):
        def changed(places, by=2):
            return tuple(value // by if place in places else value for place, value in enumerate(values))

        order = sorted((place for place, value in enumerate(values) if value >= 4),
                       key=lambda place: -values[place])
        steps = (16, 4, 2) if excess(cost) > 256 else (4, 2) if excess(cost) > 16 else (2,)
        for floor in (16, 4):
            for place in order:
                for by in steps:
                    if values[place] // by < floor // 2:
                        continue
                    new = changed((place,), by)
                    found = self.probe(new)
                    if found is not None and excess(found) < excess(cost) and found.shapes != cost.shapes:
                        return new, found
        for index, one in enumerate(order):  # two numbers that must shrink together
            for other in order[index + 1:]:
                new = changed((one, other))
                found = self.probe(new)
                if found is not None and excess(found) < excess(cost):
                    return new, found
        return None

    def ragged(self, values: tuple[int, ...], cost: Cost, max_bytes: int, max_flops: int):
        """The same with sizes made odd where they may be, as (values, cost)."""
        for place in sorted(range(len(values)), key=lambda place: -values[place]):
            if values[place] < 5:
                continue
            for new in _odd_near(values[place]):
                one = values[:place] + (new,) + values[place + 1:]
                found = self.probe(one)
                if found is None or found.shapes == cost.shapes:
                    continue
                if found.bytes <= 2 * max_bytes and found.flops <= 2 * max_flops:
                    values, cost = one, found
                    break
        return values, cost


def _odd_near(value: int) -> list[int]:
    """Sizes near `value` that no tile divides."""
    odd = value + 1 if value % 2 == 0 else value + 2
    return [odd, value - 1 - value % 2 if value > 4 else odd]


def find_variants(source: str, max_bytes: int = 8 << 20, max_flops: int = 1 << 28,
                  own: bool = False, grows: bool = True) -> list[Variant]:
    """Variants to judge a program at, the smallest first: `ragged`, `small`, and `own` (the task's own sizes)
    where asked for, or where they are within the budget. Where none is within it, the least ones, or where `grows`, some
    above them. Raises TaskError where none is found."""
    search = Search(source)
    found: list[Variant] = []
    base = search.smaller(max_bytes, max_flops, grows=grows)
    if base is not None:
        quarter = search.smaller(max(max_bytes // 32, 1), max(max_flops // 32, 1), base[0], grows) or base
        odd = search.ragged(*quarter, max(max_bytes, base[1].bytes), max(max_flops, base[1].flops))
        if odd[0] not in (base[0], search.original):
            found.append(search.variant("ragged", *odd))
        if base[0] != search.original:
            found.append(search.variant("small", *base))
        else:
            found.append(search.variant("own", *base))
    if own and all(one.name != "own" for one in found):
        if search.cost is None:
            search.cost = Cost(0, 0, math.inf, ())
        found.append(Variant("own", source, search.cost, ""))
    if not found:
        raise TaskError("no smaller sizes were found at which the module runs"
                        + (f" (on shapes alone: {search.why})" if search.how == "cpu" else ""))
    return found


def warm() -> None:
    """Imports what torch imports only when shapes are first computed: seconds, which every forked child would
    spend anew."""
    from torch.nn import functional
    with torch.device("meta"), torch.no_grad(), Measure():
        image = functional.conv2d(torch.empty(1, 2, 4, 4), torch.empty(2, 2, 3, 3))
        functional.softmax(image.sum(1) @ torch.empty(2, 2), -1)


def to_json(variants: list[Variant]) -> list[dict]:
    return [{"name": one.name, "source": one.source, "changed": one.changed, "bytes": one.cost.bytes,
             "flops": one.cost.flops, "depth": one.cost.depth} for one in variants]


def from_json(records: list[dict]) -> list[Variant]:
    return [Variant(one["name"], one["source"], Cost(one["bytes"], one["flops"], one["depth"], ()),
                    one["changed"]) for one in records]
