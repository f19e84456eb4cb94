#!/usr/bin/env python3
"""Writes .npy files, right and wrong ones, into a folder; without NumPy."""
import struct
import sys

folder = sys.argv[1]


def header(descr, shape, order="False", version=1):
    text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}"
    length = 2 if version == 1 else 4
    text += " " * (-(6 + 2 + length + len(text) + 1) % 64) + "\n"
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(length, "little") + text.encode()


def write(name, *parts):
    with open(f"{folder}/{name}.npy", "wb") as file:
        file.write(b"".join(parts))


six = struct.pack("<6f", *range(6))
right = header("<f4", "(2, 3)") + six
write("right", right)
write("special", header("<f4", "(2, 3)"), struct.pack("<6f", float("nan"), float("inf"), 1, 2, 3, float("-inf")))
write("empty_dims", header("<f4", "(0, 3)"))
write("scalar", header("<f4", "()"), struct.pack("<f", 3))
write("one_dim", header("<f4", "(6,)"), six)
write("other_shape", header("<f4", "(3, 2)"), six)
write("double", header("<f8", "(2, 3)"), struct.pack("<6d", *range(6)))
write("integers", header("<i4", "(2, 3)"), struct.pack("<6i", *range(6)))
write("big_endian", header(">f4", "(2, 3)"), struct.pack(">6f", *range(6)))
write("fortran", header("<f4", "(2, 3)", order="True"), six)
write("objects", header("|O", "(2,)"), b"\0" * 16)
write("text", header("<U1", "(2,)"), b"a\0\0\0b\0\0\0")
write("complex", header("<c8", "(2, 3)"), b"\0" * 48)
record = b"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }".ljust(117) + b"\n"
write("record", b"\x93NUMPY\x01\x00v\x00", record, b"\0" * 8)
write("truncated", right[:-3])
write("truncated_header", right[:20])
write("longer", right, b"xx")
write("nothing", b"")
write("no_magic", b"kernel k()")
write("version_9", right[:6] + b"\x09\x00" + right[8:])
write("long_header", b"\x93NUMPY\x02\x00" + (1 << 30).to_bytes(4, "little"), b"{")
write("negative", header("<f4", "(-2, 3)"), six)
write("overflow", header("<f4", "(4611686018427387904, 4611686018427387904)"))
write("overflow_bytes", header("<f4", "(4611686018427387904, 3)"))
write("beyond_64_bits", header("<f4", "(99999999999999999999, 3)"))
write("too_large", header("<f4", "(2000000000, 2000000000)"))  # 16 EB announced
write("bad_ids", header("<i8", "(3,)"), struct.pack("<3q", 0, 5, -1))
