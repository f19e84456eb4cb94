"""What a launch needs, from the plan that the compiler wrote: sizes, guards, shapes, grids, memory.

It knows neither torch nor a driver. `kernel.json` holds a variant for each choice of dtypes, card and, where they were
fixed, sizes; an expression of sizes in it is a number, a name, or a list whose first item says what it does.
"""
import math
import struct
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

LARGEST_DIM = 1 << 48
MAX_BLOCKS = 0x7FFFFFFF
ALIGNMENT = 256  # of temporaries
MOST_POINTS = 1 << 20  # of a guard that is decided point by point


class Refused(ValueError):
    """Shapes or sizes for which the kernel was not made."""


class NoValue(ArithmeticError):
    """An expression divides by zero, or leaves 64 bits."""


def _python_float(name: str, a: float, b: float) -> float:
    """As Python, and the compiler, compute sizes with floats in them: what has no value is nan or an infinity."""
    try:
        return FLOATS[name](a, b)
    except ZeroDivisionError:
        return math.nan if name in ("//", "%") or a == 0 or math.isnan(a) else math.copysign(math.inf, a)
    except (ValueError, OverflowError):
        return math.nan


FLOATS: Dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b, "**": math.pow, "max": max, "min": min,
    "neg": lambda a, b: -a, "abs": lambda a, b: abs(a), "floor": lambda a, b: math.floor(a),
    "ceil": lambda a, b: math.ceil(a), "round": lambda a, b: float(round(a)), "trunc": lambda a, b: math.trunc(a),
    "sqrt": lambda a, b: math.sqrt(a), "exp": lambda a, b: math.exp(a), "exp2": lambda a, b: math.pow(2, a),
    "log": lambda a, b: math.log(a), "log2": lambda a, b: math.log2(a),
}
BINARY_FLOATS = 9  # the first of them take two numbers


def _floats(steps: Sequence[Any], sizes: Dict[str, int], loops: Sequence[int]) -> int:
    stack: List[float] = []
    for kind, operand in zip(steps[::2], steps[1::2]):
        if kind == "push":
            stack.append(float(evaluate(operand, sizes, loops)))
        elif kind == "number":
            stack.append(struct.unpack("<d", struct.pack("<q", operand))[0])
        else:
            b = stack.pop() if list(FLOATS).index(operand) < BINARY_FLOATS else 0.0
            stack[-1] = _python_float(operand, stack[-1], b)
    if len(stack) != 1 or not abs(stack[0]) <= 2**53 or stack[0] != math.trunc(stack[0]):
        raise NoValue()
    return int(stack[0])


def evaluate(expr: Any, sizes: Dict[str, int], loops: Sequence[int] = ()) -> int:
    """The value of an expression; NoValue where it has none."""
    if isinstance(expr, int):
        return expr
    if isinstance(expr, str):
        return sizes[expr]
    if expr is None:
        raise NoValue()
    operation = expr[0]
    if operation == "loop":
        return loops[expr[1]]
    if operation == "float":
        return _floats(expr[1:], sizes, loops)
    if operation == "where":
        _, comparison, left, right, yes, no = expr
        a, b = evaluate(left, sizes, loops), evaluate(right, sizes, loops)
        return evaluate(yes if (a == b if comparison == "==" else a <= b) else no, sizes, loops)
    values = [evaluate(each, sizes, loops) for each in expr[1:]]
    if operation == "+":
        result = sum(values)
    elif operation == "*":
        result = math.prod(values)
        return result  # a term of a sum, which is checked as a whole
    elif operation == "//":
        if values[1] == 0:
            raise NoValue()
        result = values[0] // values[1]
    elif operation == "min":
        result = min(values)
    else:
        assert operation == "max", operation
        result = max(values)
    if not -(1 << 63) <= result < 1 << 63:
        raise NoValue()
    return result


def symbolic(expr: Any, sizes: Dict[str, Any], least: Callable[[Any, Any], Any], most: Callable[[Any, Any], Any]) -> Any:
    """The value where sizes may be symbols of a tracer: nothing is checked. `least`, `most`: of two of them."""
    if isinstance(expr, int):
        return expr
    if isinstance(expr, str):
        return sizes[expr]
    operation = expr[0]
    if operation == "float":
        return _floats(expr[1:], {name: int(size) for name, size in sizes.items()}, ())
    if operation == "where":
        _, comparison, left, right, yes, no = expr
        a, b = symbolic(left, sizes, least, most), symbolic(right, sizes, least, most)
        return symbolic(yes if (a == b if comparison == "==" else a <= b) else no, sizes, least, most)
    result = None
    for each in expr[1:]:
        value = symbolic(each, sizes, least, most)
        if result is None:
            result = value
        elif operation == "//":
            result = result // value
        else:
            result = (result + value if operation == "+" else result * value if operation == "*" else
                      least(result, value) if operation == "min" else most(result, value))
    return result


# --- Sizes and guards


def _holds_in_box(guard: Dict[str, Any], sizes: Dict[str, int], point: List[int]) -> Optional[bool]:
    """Whether a subscript stays inside at all points; `point` is left where it does not. None: not decided."""
    left = MOST_POINTS

    def visit() -> Optional[bool]:
        nonlocal left
        at = len(point)
        if at < len(guard["lows"]):
            low, high = evaluate(guard["lows"][at], sizes, point), evaluate(guard["highs"][at], sizes, point)
            for value in range(low, high):
                point.append(value)
                result = visit()
                if result is not True:
                    return result
                point.pop()
            return True
        left -= 1
        if left < 0:
            return None
        if any(evaluate(each, sizes, point) < 0 for each in guard["conditions"]):
            return True
        return 0 <= evaluate(guard["lhs"], sizes, point) < evaluate(guard["rhs"], sizes, point)

    linear = guard.get("linear")
    if linear is None:
        return visit()
    # Largest and smallest at corners.
    least, most = evaluate(linear["rest"], sizes), evaluate(linear["rest"], sizes)
    lowest, highest = [], []
    for low, high, weight in zip(guard["lows"], guard["highs"], linear["weights"]):
        first, last, step = evaluate(low, sizes), evaluate(high, sizes) - 1, evaluate(weight, sizes)
        if first > last:
            return True
        lowest.append(first if step >= 0 else last)
        highest.append(last if step >= 0 else first)
        least += step * lowest[-1]
        most += step * highest[-1]
    point.extend(lowest if least < 0 else highest)
    return 0 <= least and most < evaluate(guard["rhs"], sizes)


def _holds(guard: Dict[str, Any], sizes: Dict[str, int], point: List[int]) -> Optional[bool]:
    try:
        kind = guard["kind"]
        if kind == "in bounds":
            return _holds_in_box(guard, sizes, point)
        value = evaluate(guard["lhs"], sizes)
        if kind == "not negative":
            return value >= 0
        if kind == "zero":
            return value == 0
        if kind == "not zero":
            return value != 0
        divisor = evaluate(guard["rhs"], sizes)
        return divisor != 0 and value % divisor == 0
    except NoValue:
        return None


def bind(variant: Dict[str, Any], shapes: Sequence[Optional[Sequence[int]]]) -> Dict[str, int]:
    """The sizes that follow from the shapes of the inputs (None: of an output or a scalar); Refused where a guard says
    so."""
    sizes: Dict[str, int] = {}
    for size in variant["sizes"]:
        name = size["name"]
        if "bound" in size:
            argument, dim = size["bound"]
            sizes[name] = shapes[argument][dim]  # type: ignore[index]
            if sizes[name] > LARGEST_DIM:
                raise Refused(f"size {name} = {sizes[name]} is beyond 2^48, the largest dim")
        else:
            try:
                sizes[name] = evaluate(size["value"], sizes)
            except NoValue:
                raise Refused(f"size {name} has no value: it divides by 0 or leaves 64 bits ({_text(sizes)})") from None
    for guard in variant["guards"]:
        point: List[int] = []
        holds = _holds(guard, sizes, point)
        if holds is not True:
            at = f"; at {tuple(point)}" if point else ""
            raise Refused(f"{guard['message']} ({_text(sizes)}{at})" + (": not decided" if holds is None else ""))
    for argument, shape in zip(variant["arguments"], shapes):
        if shape is not None and tuple(shape) != shape_of(argument, sizes):
            raise Refused(f"'{argument['name']}' must have shape {list(shape_of(argument, sizes))}, got {list(shape)}")
    return sizes


def _text(sizes: Dict[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sizes.items())


def shape_of(argument: Dict[str, Any], sizes: Dict[str, int]) -> Tuple[int, ...]:
    try:
        shape = tuple(evaluate(dim, sizes) for dim in argument["dims"])
    except NoValue:
        shape = (-1,)
    if any(dim < 0 for dim in shape):
        raise Refused(f"'{argument['name']}' would have a negative dim, or one beyond 64 bits ({_text(sizes)})")
    return shape


# --- Launches


@dataclass
class Tile:
    function: str
    blocks: int
    threads: int
    shared: int
    dependent: bool


@dataclass
class Start:
    """One launch, or (no function, no tiles) a buffer that is filled with zeros: `zeroed`, its slot and bytes."""
    function: Optional[str] = None
    blocks: int = 0
    threads: int = 0
    shared: int = 0
    parameters: List[Tuple[str, int]] = field(default_factory=list)  # ("slot" | "value" | "scalar", which)
    has_workspace: bool = False
    workspace: int = -1  # its slot
    tiles: List[Tile] = field(default_factory=list)  # they run instead where slots of `aligned` are multiples of 16
    aligned: List[int] = field(default_factory=list)
    tile_bytes: int = 0
    tile_zeroed: bool = False
    zeroed: Optional[Tuple[int, int]] = None


class Prepared:
    """All that follows from the sizes. Slots: the plan's buffers, the error record, an area for each of its steps.

    `device` has `multiprocessors`, `threads` (of one), `resident(function, threads, shared)`, the blocks that run at
    once, `allow(function, shared, cluster)`: whether the function may have so much shared memory.
    """

    def __init__(self, variant: Dict[str, Any], sizes: Dict[str, int], device: Any) -> None:
        self.plan = variant["plan"]
        self.sizes, self.device = sizes, device
        self.errors_slot = len(self.plan["buffers"])
        self.starts: List[Start] = []
        self.areas = [0] * len(self.plan["steps"])
        try:
            for self.position, step in enumerate(self.plan["steps"]):
                self._walk(step, [])
            self._lay_out()
        except NoValue:
            raise Refused(f"a size of a launch does not fit in 64 bits ({_text(sizes)})") from None

    def _size(self, expr: Any, loops: Sequence[int] = ()) -> int:
        value = evaluate(expr, self.sizes, loops)
        if value < 0:
            raise NoValue()
        return value

    def _walk(self, step: Dict[str, Any], loops: List[int]) -> None:
        kind = step["kind"]
        if kind == "zero":
            bytes_ = self._size(self.plan["buffers"][step["buffer"]]["bytes"], loops)
            self.starts.append(Start(zeroed=(step["buffer"], bytes_)))
        elif kind == "loop":
            low, high = evaluate(step["low"], self.sizes, loops), evaluate(step["high"], self.sizes, loops)
            for value in reversed(range(low, high)) if step["reverse"] else range(low, high):
                for inner in step["body"]:
                    self._walk(inner, loops + [value])
        else:
            self._launch(step, loops)

    def _launch(self, step: Dict[str, Any], loops: List[int]) -> None:
        points = self._size(step["points"], loops)
        if not points:
            return
        start = Start()
        chosen = self._function(step, points)
        if chosen:
            start.function, start.threads, start.shared = chosen["name"], chosen["threads"], chosen["shared"]
            if not self.device.allow(start.function, start.shared, chosen["cluster"]):
                raise Refused(f"'{start.function}' needs {start.shared} bytes of shared memory, which the device lacks")
            resident = self.device.resident(start.function, start.threads, start.shared)
            start.blocks = min(_blocks_for(chosen, points), _max_blocks(chosen, resident))
        self._add_tiles(step["tiles"], start, loops)
        if not chosen and not start.tiles:
            raise Refused("a launch would have more blocks than a grid holds")
        for argument in step["arguments"]:
            kind = argument[0]
            if kind == "buffer":
                start.parameters.append(("slot", argument[1]))
            elif kind == "errors":
                start.parameters.append(("slot", self.errors_slot))
            elif kind == "workspace":
                start.workspace = self.errors_slot + 1 + self.position
                start.parameters.append(("slot", start.workspace))
                total = (self._size(chosen["workspace"], loops) if chosen else 0) * start.blocks
                start.has_workspace = total != 0
                self.areas[self.position] = max(self.areas[self.position], total, start.tile_bytes)
            elif kind == "scalar":
                start.parameters.append(("scalar", argument[1]))
            else:
                start.parameters.append(("value", evaluate(argument[1], self.sizes, loops)))
        start.aligned = [start.parameters[position][1] for position in step["tiles"]["aligned"]] if start.tiles else []
        self.starts.append(start)

    def _function(self, step: Dict[str, Any], points: int) -> Optional[Dict[str, Any]]:
        by_thread, by_team = step["thread"], step["team"]
        if not by_thread or not by_team:
            return by_team or by_thread
        # A thread for a point pays where that fills a good part of the device.
        fills = points >= self.device.multiprocessors * self.device.threads // 2
        return by_thread if (fills if step["unit"] == "points" else step["unit"] == "thread") else by_team

    def _add_tiles(self, tiles: Dict[str, Any], start: Start, loops: Sequence[int]) -> None:
        if self._size(tiles["largest"], loops) > MAX_BLOCKS:
            return
        made = []
        for launch in tiles["launches"]:
            blocks = self._size(launch["blocks"], loops)
            if blocks > MAX_BLOCKS or not self.device.allow(launch["function"], launch["shared"], 1):
                return
            made.append(Tile(launch["function"], blocks, launch["threads"], launch["shared"], launch["dependent"]))
        bytes_ = self._size(tiles["workspace"], loops)
        start.tiles, start.tile_zeroed = made, tiles["zeroed"]
        start.tile_bytes = bytes_ if made else 0

    def _lay_out(self) -> None:
        """Largest first, each at the lowest offset that is free while it lives."""
        requests = [(slot, self._size(buffer["bytes"]), buffer["life"])
                    for slot, buffer in enumerate(self.plan["buffers"]) if buffer["argument"] < 0 and buffer["life"]]
        requests += [(self.errors_slot + 1 + position, bytes_, [position, position])
                     for position, bytes_ in enumerate(self.areas) if bytes_]
        self.offsets: Dict[int, int] = {}
        self.workspace_bytes = 0
        placed: List[Tuple[int, int, List[int]]] = []  # begin, end, life
        for slot, bytes_, life in sorted(requests, key=lambda one: -one[1]):
            aligned = -(-bytes_ // ALIGNMENT) * ALIGNMENT
            offset = 0
            for begin, end, other in sorted(placed):
                if life[0] <= other[1] and other[0] <= life[1]:
                    if begin - offset >= aligned:
                        break
                    offset = max(offset, end)
            self.offsets[slot] = offset
            placed.append((offset, offset + aligned, life))
            self.workspace_bytes = max(self.workspace_bytes, offset + aligned)

    def slots(self, tensors: Sequence[int], errors: int, workspace: int) -> List[int]:
        """Addresses: of the kernel's tensors in order, the error record, and the memory for temporaries."""
        result = [workspace + self.offsets[slot] if slot in self.offsets else 0
                  for slot in range(self.errors_slot + 1 + len(self.areas))]
        for slot, buffer in enumerate(self.plan["buffers"]):
            if buffer["argument"] >= 0:
                result[slot] = tensors[buffer["argument"]]
        result[self.errors_slot] = errors
        return result


def _blocks_for(function: Dict[str, Any], points: int) -> int:
    if function["units"]:
        return -(-function["units"] // function["units_per_block"])
    return -(-points // (function["units_per_block"] * function["points_per_unit"])) * function["cluster"]


def _max_blocks(function: Dict[str, Any], resident: int) -> int:
    cluster = function["cluster"]
    if cluster > 1:
        return 16 * (-(-resident // cluster) * cluster)
    leaves = function["units_per_block"] == function["threads"] and function["workspace"] == 0
    return MAX_BLOCKS if leaves else 4 * resident
