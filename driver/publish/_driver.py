"""Code on a device, through the CUDA driver's C interface (libcuda.so.1); torch is not needed here."""
import ctypes
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import _plan

MULTIPROCESSORS, THREADS_OF_MULTIPROCESSOR = 16, 39  # CU_DEVICE_ATTRIBUTE_*
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76
DYNAMIC_SHARED, LARGE_CLUSTER = 8, 14  # CU_FUNC_ATTRIBUTE_*
ERROR_LOG, ERROR_LOG_BYTES = 5, 6  # CU_JIT_*
SERIALIZATION = 6  # CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
PORTABLE_CLUSTER = 8


class _Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("padding", ctypes.c_int), ("value", ctypes.c_int * 16)]


class _Config(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3), ("shared", ctypes.c_uint),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(_Attribute)), ("count", ctypes.c_uint)]


class DriverError(RuntimeError):
    """A call of the driver failed, or there is no driver."""


class Driver:
    """The driver of this process."""

    def __init__(self, path: str = "libcuda.so.1") -> None:
        try:
            self.library = ctypes.CDLL(path)
        except OSError as error:
            raise DriverError(f"there is no CUDA driver: {error}") from None

    def __call__(self, name: str, *arguments: Any) -> None:
        code = getattr(self.library, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(code, ctypes.byref(text))
            raise DriverError(f"{name}: {(text.value or str(code).encode()).decode()}")

    def attribute(self, which: int, device: int) -> int:
        value = ctypes.c_int()
        self("cuDeviceGetAttribute", ctypes.byref(value), which, device)
        return value.value


class Code:
    """The code of a variant, loaded in the context that is current; also the device of _plan.Prepared."""

    def __init__(self, driver: Driver, folder: str, variant: Dict[str, Any], device: int) -> None:
        self.driver, self.variant = driver, variant
        self.multiprocessors = driver.attribute(MULTIPROCESSORS, device)
        self.threads = driver.attribute(THREADS_OF_MULTIPROCESSOR, device)
        with open(os.path.join(folder, variant["code"]), "rb") as file:
            image = file.read() + b"\0"
        self.module = ctypes.c_void_p()
        log = ctypes.create_string_buffer(4096)
        options = (ctypes.c_int * 2)(ERROR_LOG, ERROR_LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), len(log))
        try:
            driver("cuModuleLoadDataEx", ctypes.byref(self.module), image, 2, options, values)
        except DriverError as error:
            said = log.value.decode(errors="replace").strip()
            raise DriverError(f"{error}: the driver does not load {variant['code']}, made for {variant['target']}"
                              + (f": {said}" if said else "")) from None
        self.functions: Dict[str, ctypes.c_void_p] = {}
        self.known_resident: Dict[Tuple[str, int, int], int] = {}

    def function(self, name: str) -> ctypes.c_void_p:
        if name not in self.functions:
            found = ctypes.c_void_p()
            self.driver("cuModuleGetFunction", ctypes.byref(found), self.module, name.encode())
            self.functions[name] = found
        return self.functions[name]

    def allow(self, name: str, shared: int, cluster: int) -> bool:
        function = self.function(name)
        if cluster > PORTABLE_CLUSTER:
            self.driver("cuFuncSetAttribute", function, LARGE_CLUSTER, 1)
        return not shared or not self.driver.library.cuFuncSetAttribute(function, DYNAMIC_SHARED, shared)

    def resident(self, name: str, threads: int, shared: int) -> int:
        key = name, threads, shared
        if key not in self.known_resident:
            blocks = ctypes.c_int()
            self.driver("cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(blocks), self.function(name), threads,
                        ctypes.c_size_t(shared))
            self.known_resident[key] = max(blocks.value, 1) * self.multiprocessors
        return self.known_resident[key]


class Call:
    """Launches for one set of sizes, ready to be queued."""

    def __init__(self, code: Code, sizes: Dict[str, int]) -> None:
        self.code = code
        self.prepared = _plan.Prepared(code.variant, sizes, code)
        self.functions = {name: code.function(name) for start in self.prepared.starts
                          for name in [start.function, *(tile.function for tile in start.tiles)] if name}

    @property
    def workspace_bytes(self) -> int:
        return self.prepared.workspace_bytes

    def run(self, tensors: Sequence[int], scalars: Sequence[Any], stream: int, errors: int = 0, workspace: int = 0) -> None:
        """Queues all launches. `tensors`: addresses in order of the kernel's arguments; `scalars`: ctypes values."""
        slots = [ctypes.c_uint64(address) for address in self.prepared.slots(tensors, errors, workspace)]
        depends = self.prepared.plan["dependent_launches"]
        may_overlap = False  # the first launch waits, as every launch does, for all before the call
        for start in self.prepared.starts:
            if start.zeroed:
                slot, size = start.zeroed
                if size:
                    self._zero(slots[slot], size, stream)
                may_overlap = False
                continue
            in_tiles = bool(start.tiles) and all(slots[slot].value % 16 == 0 for slot in start.aligned)
            if not in_tiles and not start.function:
                raise _plan.Refused("this launch needs tensors whose addresses are multiples of 16")
            if in_tiles and start.tile_zeroed:
                self._zero(slots[start.workspace], start.tile_bytes, stream)
                may_overlap = False
            none = ctypes.c_uint64(0)
            values: List[Any] = []
            for kind, which in start.parameters:
                if kind == "value":
                    values.append(ctypes.c_int64(which))
                elif kind == "scalar":
                    values.append(scalars[which])
                else:
                    is_area = which > self.prepared.errors_slot
                    values.append(none if is_area and not in_tiles and not start.has_workspace else slots[which])
            pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
            if not in_tiles:
                self._launch(str(start.function), start.blocks, start.threads, start.shared, stream, pointers, may_overlap)
            for tile in start.tiles if in_tiles else ():
                if not tile.blocks:  # a sum of no points has none
                    continue
                self._launch(tile.function, tile.blocks, tile.threads, tile.shared, stream, pointers,
                             may_overlap or tile.dependent)
                may_overlap = depends
            may_overlap = depends

    def _zero(self, address: ctypes.c_uint64, size: int, stream: int) -> None:
        self.code.driver("cuMemsetD8Async", address, ctypes.c_ubyte(0), ctypes.c_size_t(size), ctypes.c_void_p(stream))

    def _launch(self, name: str, blocks: int, threads: int, shared: int, stream: int, pointers: Any,
                may_overlap: bool) -> None:
        driver, function = self.code.driver, self.functions[name]
        if may_overlap and hasattr(driver.library, "cuLaunchKernelEx"):
            attribute = _Attribute(SERIALIZATION, 0, (ctypes.c_int * 16)(1))
            config = _Config((ctypes.c_uint * 3)(blocks, 1, 1), (ctypes.c_uint * 3)(threads, 1, 1), shared, stream,
                             ctypes.pointer(attribute), 1)
            driver("cuLaunchKernelEx", ctypes.byref(config), function, pointers, None)
        else:
            driver("cuLaunchKernel", function, blocks, 1, 1, threads, 1, 1, shared, ctypes.c_void_p(stream), pointers, None)


def supports(variant: Dict[str, Any], capability: Tuple[int, int]) -> bool:
    """Whether code for a target runs on a card: `sm_90a` on 9.0 alone, PTX for `sm_80` on all that came after."""
    made_for = tuple(variant["capability"])
    if variant["exact"]:
        return capability == made_for
    if variant["kind"] == "cubin":
        return capability[0] == made_for[0] and capability >= made_for
    return capability >= made_for


def preference(variant: Dict[str, Any]) -> Tuple[Any, ...]:
    """The larger, the more a variant is made for the case: for these sizes, for this card, for a newer one."""
    return bool(variant["fixed"]), bool(variant["exact"]), tuple(variant["capability"])


def fits(variant: Dict[str, Any], dtypes: Sequence[Optional[str]], ranks: Sequence[Optional[int]]) -> bool:
    """Whether inputs have these dtypes and ranks (None: an output, or a scalar)."""
    return all(dtype is None or (dtype == argument["dtype"] and rank == len(argument["dims"]))
               for argument, dtype, rank in zip(variant["arguments"], dtypes, ranks))
