# check: M=1, K=1, N=1
# check: M=9, K=70, N=11
# check: M=32, K=256, N=32
# input: a = integers(-128, 128)
# input: b = integers(-128, 128)
def int8_matmul(a, b, row, column):
    # Exact: products and sums of 8-bit integers stay far below 2^53; CUDA has no integer matmul.
    c = torch.matmul(a.double(), b.double().t())
    return row[:, None] * column[None, :] * c
