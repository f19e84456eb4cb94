"""Reads tensors of a .safetensors file: eight bytes of length, so many of JSON, then the data."""
from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ..rule.tasks import TaskError

# By the name in the file, as torch has it, and bytes of an element.
DTYPES = {"F64": ("float64", 8), "F32": ("float32", 4), "F16": ("float16", 2), "BF16": ("bfloat16", 2),
          "F8_E4M3": ("float8_e4m3fn", 1), "F8_E5M2": ("float8_e5m2", 1), "I64": ("int64", 8), "I32": ("int32", 4),
          "I16": ("int16", 2), "I8": ("int8", 1), "U8": ("uint8", 1), "BOOL": ("bool", 1)}
MAX_HEADER = 16 << 20


@dataclass(frozen=True)
class Stored:
    dtype: str
    shape: list[int]
    data: bytes


def read(path: Path, key: str) -> Stored:
    """Raises TaskError."""
    try:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= MAX_HEADER:
                raise TaskError(f"{path} is no safetensors file" + (
                    ", but a pointer of Git LFS: git lfs pull" if _is_pointer(path) else ""))
            header = json.loads(file.read(length))
            if key not in header:
                raise TaskError(f"{path} has no tensor '{key}'")
            name, size = DTYPES[header[key]["dtype"]]
            shape, (begin, end) = [int(one) for one in header[key]["shape"]], header[key]["data_offsets"]
            count = size
            for one in shape:
                count *= one
            if end - begin != count or begin < 0:
                raise TaskError(f"{path}: '{key}' has {end - begin} bytes, but its shape says {count}")
            file.seek(8 + length + begin)
            data = file.read(count)
    except OSError as error:
        raise TaskError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise TaskError(f"{path} is no safetensors file: {error!r}") from error
    if len(data) != count:
        raise TaskError(f"{path} is cut off: '{key}' has {len(data)} of {count} bytes")
    return Stored(name, shape, data)


def _is_pointer(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(64).startswith(b"version https://git-lfs")
