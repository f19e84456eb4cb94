#!/usr/bin/env python3
"""product_chain.py LENGTH: a statement that uses a reduction's result twice in each of so many steps."""
import sys

length = int(sys.argv[1])
steps = "\n".join(f"    a{k + 1} = 0.25*a{k}*a{k} + 1" for k in range(length))
print(f"""kernel chain(x: bf16[M, D], w: bf16[N, D]) -> (y: f32[M]) {{
  parallel i in M {{
    a0 = max(sum(x[i, d]*w[j, d] for d) for j)
{steps}
    y[i] = a{length}
  }}
}}""")
