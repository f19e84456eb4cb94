# with-schedule.sh FILE SETTINGS: a matrix product with such a schedule.
printf 'kernel product(a: f16[M, K], b: f16[K, N]) -> (c: f32[M, N]) {\n  c[i, j] = sum(a[i, k] * b[k, j] for k)\n  schedule { %s }\n}\n' "$2" > "$1"
