"""The kernel as an operator of torch, for eager mode, torch.compile and CUDA graphs."""
import ctypes
import json
import os
import threading
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch

from . import _driver, _plan
from ._ops import add_op_namespace_prefix

FOLDER = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(FOLDER, "kernel.json"), encoding="utf-8") as _file:
    KERNEL: Dict[str, Any] = json.load(_file)

DTYPES = {
    "f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
    "f8e4m3": torch.float8_e4m3fn, "f8e5m2": torch.float8_e5m2, "i64": torch.int64, "i32": torch.int32,
    "i16": torch.int16, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool,
    **{name: getattr(torch, full) for name, full in (("u16", "uint16"), ("u32", "uint32"), ("u64", "uint64"))
       if hasattr(torch, full)},
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
SCALARS = {"f64": ctypes.c_double, "f32": ctypes.c_float, "i64": ctypes.c_int64, "i32": ctypes.c_int32,
           "u32": ctypes.c_uint32, "u64": ctypes.c_uint64, "bool": ctypes.c_bool}
PARAMETERS: List[str] = KERNEL["parameters"]  # tensors and scalars, as the program declares them

_lock = threading.Lock()
_codes: Dict[Tuple[int, int], _driver.Code] = {}  # by device and variant
_calls: Dict[Any, Any] = {}
_errors: Dict[Tuple[int, int], torch.Tensor] = {}  # by device and variant: what data-dependent subscripts did
_shared_driver: Optional[_driver.Driver] = None


def _get_driver() -> _driver.Driver:
    global _shared_driver
    if _shared_driver is None:
        _shared_driver = _driver.Driver()
    return _shared_driver


def _given(variant: Dict[str, Any], values: Sequence[Any]) -> List[Any]:
    """By argument of the kernel, what the call gives; None for outputs."""
    named = dict(zip(PARAMETERS, values))
    return [named.get(argument["name"]) if argument["role"] != "out" else None for argument in variant["arguments"]]


def _candidates(values: Sequence[Any]) -> List[Tuple[int, Dict[str, Any]]]:
    """The variants for these dtypes and ranks."""
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    found = []
    for number, variant in enumerate(KERNEL["variants"]):
        given = _given(variant, values)
        if _driver.fits(variant, [NAMES.get(each.dtype) if isinstance(each, torch.Tensor) else None for each in given],
                        [each.dim() if isinstance(each, torch.Tensor) else None for each in given]):
            found.append((number, variant))
    if not found:
        said = ", ".join(f"{str(each.dtype).replace('torch.', '')} of rank {each.dim()}" for each in tensors)
        raise TypeError(f"'{KERNEL['name']}' was published for {KERNEL['instances']}, not for {said}")
    return found


def _sizes(variant: Dict[str, Any], values: Sequence[Any]) -> Dict[str, int]:
    return _plan.bind(variant, [tuple(each.shape) if isinstance(each, torch.Tensor) else None
                                for each in _given(variant, values)])


def _choose(values: Sequence[Any], device: int) -> Tuple[int, Dict[str, Any], Dict[str, int]]:
    """The variant that is made most for the case, with the sizes."""
    capability = torch.cuda.get_device_capability(device)
    candidates = [one for one in _candidates(values) if _driver.supports(one[1], capability)]
    if not candidates:
        raise RuntimeError(f"'{KERNEL['name']}' was published for {', '.join(KERNEL['targets'])}; this card has "
                           f"capability {capability[0]}.{capability[1]}")
    aligned = all(value.data_ptr() % 16 == 0 for value in values if isinstance(value, torch.Tensor))
    refusal: Optional[_plan.Refused] = None
    for number, variant in sorted(candidates, key=lambda one: _driver.preference(one[1]), reverse=True):
        if variant["fixed"] and not aligned:
            continue
        try:
            sizes = _sizes(variant, values)
        except _plan.Refused as error:
            refusal = error if not variant["fixed"] else refusal
            continue
        return number, variant, sizes
    raise refusal or _plan.Refused("no variant takes these sizes")


def _call_for(values: Sequence[Any], device: int) -> Tuple[int, Dict[str, Any], Dict[str, int], _driver.Call]:
    key = (device, *((value.dtype, tuple(value.shape), value.data_ptr() % 16 == 0)
                     for value in values if isinstance(value, torch.Tensor)))
    found = _calls.get(key)
    if found is not None:
        return found
    with _lock:
        number, variant, sizes = _choose(values, device)
        code = _codes.get((device, number))
        if code is None:
            code = _codes[device, number] = _driver.Code(_get_driver(), FOLDER, variant, device)
        found = number, variant, sizes, _driver.Call(code, sizes)
        if len(_calls) >= 1024:
            _calls.clear()
        _calls[key] = found
    return found


def _scalar(argument: Dict[str, Any], value: Any) -> Any:
    declared, kind = argument["declared"], SCALARS[argument["dtype"]]
    if declared in ("f16", "bf16", "f8e4m3", "f8e5m2"):  # held in f32, rounded to what it is declared as
        return kind(torch.tensor(value, dtype=torch.float64).to(DTYPES[declared]).to(torch.float32).item())
    if declared[0] in "iu":
        bits = int(declared[1:])
        low, high = (0, (1 << bits) - 1) if declared[0] == "u" else (-(1 << bits - 1), (1 << bits - 1) - 1)
        if not low <= value <= high:
            raise _plan.Refused(f"the scalar '{argument['name']}' is {declared}, got {value}")
    return kind(value)


def run(*values: Any) -> Any:
    """Runs the kernel on tensors of one CUDA device, on torch's current stream."""
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    device = tensors[0].get_device()
    if any(value.get_device() != device or device < 0 for value in tensors):
        raise _plan.Refused(f"the tensors of '{KERNEL['name']}' must be on one CUDA device")
    with torch.cuda.device(device):
        values = tuple(_contiguous(name, value) for name, value in zip(PARAMETERS, values))
        number, variant, sizes, call = _call_for(values, device)
        given = _given(variant, values)
        outputs, addresses, scalars = [], [], []
        for argument, value in zip(variant["arguments"], given):
            if argument["role"] == "scalar":
                scalars.append(_scalar(argument, value))
                continue
            if argument["role"] == "out":
                value = torch.empty(_plan.shape_of(argument, sizes), dtype=DTYPES[argument["dtype"]], device=device)
                outputs.append(value)
            addresses.append(value.data_ptr())
        errors = 0
        if variant["errors"]:
            if (device, number) not in _errors:
                _errors[device, number] = torch.zeros(2, dtype=torch.int64, device=device)
            errors = _errors[device, number].data_ptr()
        # torch's allocator keeps the memory for this stream until the launches have used it.
        workspace = torch.empty(call.workspace_bytes, dtype=torch.uint8, device=device) if call.workspace_bytes else None
        call.run(addresses, scalars, torch.cuda.current_stream(device).cuda_stream, errors,
                 workspace.data_ptr() if workspace is not None else 0)
    return outputs[0] if len(outputs) == 1 else tuple(outputs) if outputs else None


def _contiguous(name: str, value: Any) -> Any:
    if not isinstance(value, torch.Tensor) or value.is_contiguous():
        return value
    if name in KERNEL["updated"]:
        raise _plan.Refused(f"'{name}' is updated in place and must be contiguous")
    return value.contiguous()


def fake(*values: Any) -> Any:
    """The outputs' shapes, for tracers: sizes may be symbols, and no guard is decided."""
    _, variant = _candidates(values)[0]
    variant = next((one for _, one in _candidates(values) if not one["fixed"]), variant)
    given = _given(variant, values)
    sizes: Dict[str, Any] = {}
    for size in variant["sizes"]:
        if "bound" in size:
            argument, dim = size["bound"]
            sizes[size["name"]] = given[argument].shape[dim]
        else:
            sizes[size["name"]] = _plan.symbolic(size["value"], sizes, torch.sym_min, torch.sym_max)
    device = next(value.device for value in values if isinstance(value, torch.Tensor))
    outputs = [torch.empty([_plan.symbolic(dim, sizes, torch.sym_min, torch.sym_max) for dim in argument["dims"]],
                           dtype=DTYPES[argument["dtype"]], device=device)
               for argument in variant["arguments"] if argument["role"] == "out"]
    return outputs[0] if len(outputs) == 1 else tuple(outputs) if outputs else None


def synchronize(device: Optional[int] = None) -> None:
    """Waits for the device, and raises IndexError where a subscript from data left its tensor since the last call."""
    device = torch.cuda.current_device() if device is None else device
    torch.cuda.synchronize(device)
    for (owner, number), record in _errors.items():
        if owner != device:
            continue
        first, value = record.tolist()
        if first & 0xFFFFFFFF:
            record.zero_()
            site = KERNEL["variants"][number]["errors"][first >> 32]
            raise IndexError(f"{site['place']}: {site['text']} is outside: a subscript is {value}")


def _register() -> Any:
    name = add_op_namespace_prefix(KERNEL["name"])
    namespace, short = name.split("::")
    operators = getattr(torch.ops, namespace)
    if not hasattr(operators, short):  # this build may have been loaded under another name
        torch.library.define(name, KERNEL["schema"])
        torch.library.impl(name, "CUDA")(run)
        torch.library.register_fake(name)(fake)
    return getattr(operators, short)


OPERATOR = _register()
