"""special_rows.py FILE ROWS COLUMNS: small integers of f32, with one infinity or NaN in most rows, at the ends and between."""
import array
import sys

rows, columns = int(sys.argv[2]), int(sys.argv[3])
numbers = array.array("f", (float((7*row + 13*column) % 101 - 50) for row in range(rows) for column in range(columns)))
special = [float("inf"), float("-inf"), float("nan")]
for row in range(1, rows):
    place = (0, columns - 1, columns//2, columns//3 + 1)[row % 4]
    numbers[row*columns + place] = special[row % 3]
head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}".encode()
head += b" "*(-(len(head) + 11) % 64) + b"\n"
with open(sys.argv[1], "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + numbers.tobytes())
