"""What a result came from: machine, versions, clocks, and what the compiler made of the program."""
from __future__ import annotations

import base64
import functools
import hashlib
import os
import platform
import re
import subprocess
import sys
import zlib

import torch

from . import runner

STAGES = ("scheduled",)  # kept of every kernel that is judged
HASHED_BYTES = 1 << 26  # results up to this size have a hash in the record


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# What the checker wrote into the IR: the precision of a product that may be rounded, types of values and tensors.
_LOWER = re.compile(r'precision = "(tf32|bf16)"|\b(bf16|f16|f8E4M3FN|f8E5M2)\b')
_DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f8E4M3FN": torch.float8_e4m3fn, "f8E5M2": torch.float8_e5m2}


def lowered(ir: str, own: set[torch.dtype]) -> list[str]:
    """Precisions below float32 that a kernel computes or keeps values in (`tf32`, `bf16`, `f16`, `f8...`), but for
    the types `own` of what the module is given."""
    found = {precision or kept for precision, kept in _LOWER.findall(ir)}
    return sorted(name for name in found if _DTYPES.get(name) not in own)


def of_kernel(kernel: runner.Kernel, settings: dict[str, str], optionals: list[str], ellipsis_rank: int,
              own: set[torch.dtype]) -> dict:
    """The instance, a hash of its IR once scheduled, precisions below those of the module's tensors (`own`), and for
    a device its PTX (compressed, see `unpack`)."""
    told: dict = {"settings": settings, "optionals": optionals, "ellipsis_rank": ellipsis_rank}
    ir, ptx = kernel.stage("scheduled"), kernel.stage("ptx")
    if ir is not None:
        told.update(ir_sha256=hash_of(ir), lowered=lowered(ir, own))
    if ptx is not None:
        told.update(ptx_sha256=hash_of(ptx), ptx=pack(ptx))
    return told


def pack(text: str) -> str:
    return base64.b85encode(zlib.compress(text.encode(), 6)).decode()


def unpack(packed: str) -> str:
    return zlib.decompress(base64.b85decode(packed)).decode()


def of_results(results: list[torch.Tensor]) -> str | None:
    """A hash of the results' bits; None where they are too many."""
    if sum(one.nbytes for one in results) > HASHED_BYTES:
        return None
    digest = hashlib.sha256()
    for one in results:
        data = one.detach().cpu().contiguous()
        digest.update(repr((str(data.dtype), tuple(data.shape))).encode())
        digest.update(data.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


@functools.cache
def versions(target: str) -> dict:
    told = {"tegula": runner.version(), "llvm": runner.llvm_version(), "library": _library_hash(),
            "commit": os.environ.get("TEGULA_COMMIT", ""), "torch": torch.__version__,
            "python": sys.version.split()[0], "processor": _processor()}
    if target == "cuda":
        told.update(device=torch.cuda.get_device_name(), cuda=torch.version.cuda,
                    cudnn=torch.backends.cudnn.version(), driver=_driver())
    return told


@functools.cache
def _library_hash() -> str:
    """Of the compiler itself: two builds of one version are two compilers."""
    with open(runner.library_path(), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def _driver() -> str:
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8", errors="replace") as file:
            found = re.search(r"Kernel Module\D*?(\d+\.[\d.]+)", file.read())
    except OSError:
        found = None
    return found[1] if found else (_query("driver_version") or [""])[0]


@functools.cache
def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            found = re.search(r"^model name\s*:\s*(.+)$", file.read(), re.MULTILINE)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def clocks(target: str) -> dict:
    """In MHz, now. What cannot be asked is left out."""
    if target == "cuda":
        handle = _nvml()
        if handle is not None:
            import pynvml
            try:
                return {"sm": pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
                        "memory": pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM),
                        "sm_most": pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM)}
            except pynvml.NVMLError:  # not told to this user
                return {}
        found = _query("clocks.sm,clocks.mem,clocks.max.sm") or []
        return dict(zip(("sm", "memory", "sm_most"), (int(one) for one in found if one.isdigit())))
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            found = re.findall(r"^cpu MHz\s*:\s*([\d.]+)$", file.read(), re.MULTILINE)
    except OSError:
        return {}
    return {"processor": max(round(float(one)) for one in found)} if found else {}


@functools.cache
def _nvml():
    """The device for the driver's own library, which answers at once where nvidia-smi takes its time; None."""
    try:
        import pynvml
        pynvml.nvmlInit()
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0]
        return pynvml.nvmlDeviceGetHandleByIndex(int(visible or 0))
    except Exception:  # not installed, or no driver, or a name in place of a number
        return None


def _query(fields: str) -> list[str] | None:
    """What nvidia-smi says of the current device."""
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if visible:
        command.append(f"--id={visible.split(',')[0]}")
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return [one.strip() for one in told.splitlines()[0].split(",")] if told.strip() else None
