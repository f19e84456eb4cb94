"""Writes numbers of f32 to a .npy file: all upper halves of their bits, beside lower halves on both sides of the middle."""
import array
import sys

numbers = array.array("I", (upper << 16 | lower for upper in range(1 << 16) for lower in (0, 1, 0x8000, 0xffff)))
numbers.extend((0, 0x80000000, 0x7f800000))
head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(numbers)},), }}".encode()
head += b" "*(-(len(head) + 11) % 64) + b"\n"
with open(sys.argv[1], "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + numbers.tobytes())
