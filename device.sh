#!/usr/bin/env bash
# device.sh TEGULA OUT: the strategy for matrix products on the H200. TEGULA_TORCH names libtegula_torch.so
# (see bench/gpu.sh). Correctness first, then speed with the strategy and without it.
set -u
tegula=$1 out=${2:-/tmp/contraction}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
cd "$out"
cat > mm.tgl <<'T'
kernel mm(a: T[M, K], b: T[K, N]) -> (c: T[M, N]) {
  c[i, j] = sum(a[i, k] * b[k, j] for k)
}
T
printf 'def mm(a, b):\n    return a @ b\n' > mm.ref.py
cat > mmt.tgl <<'T'
kernel mmt(a: T[M, K], b: T[N, K]) -> (c: T[M, N]) {
  c[i, j] = sum(a[i, k] * b[j, k] for k)
}
T
printf 'def mmt(a, b):\n    return a @ b.t()\n' > mmt.ref.py
cat > conv.tgl <<'T'
kernel conv(x: f32[N, C, H, W], w: f32[O, C, KH, KW]) -> (y: f32[N, O, P, Q])
  where P = H + 2 - KH + 1, Q = W + 2 - KW + 1
{
  y[n, o, p, q] = sum(x[n, c, p + r - 1, q + s - 1, fill=0] * w[o, c, r, s] for c, r, s)
}
T
printf 'def conv(x, w):\n    return torch.conv2d(x, w, padding=1)\n' > conv.ref.py
bench() { echo "== $*"; timeout 100 "$tegula" bench --target=cuda --seconds=0.3 "$@" 2>&1 | tail -4; }
# 1. right: integers bit for bit against the CPU (all layouts, types, tails, splits, convolutions)
if [ -z "${SPEED_ONLY:-}" ]; then
  for a in "f32 M=64,N=64,K=64" "f32 M=65,N=131,K=77" "f16 M=72,N=136,K=104" "bf16 M=64,N=129,K=65" \
           "f32 M=17,N=23,K=1025" "f32 M=300,N=520,K=160" "bf16 M=512,N=512,K=192"; do
    mkdir -p a; sed "s|--target=\$target|--target=\${target/emulate/cuda}|" "$here/test/codegen/Inputs/agree.sh" > agree.sh
    cp "$here"/test/codegen/Inputs/*.tgl .
    PATH=$(dirname "$tegula"):$PATH bash agree.sh a products.tgl $a && echo "same: $a" || echo "DIFFERENT: $a"
  done
  for a in "f32 N=2,C=9,H=13,W=14,O=40" "f32 N=3,C=32,H=28,W=28,O=130"; do
    PATH=$(dirname "$tegula"):$PATH bash agree.sh a windows.tgl $a && echo "same: windows $a" || echo "DIFFERENT: windows $a"
  done
fi
# 2. fast
for n in 1024 2048 4096 8192; do
  bench mm.tgl --type=T=f32 -d M=$n,N=$n,K=$n
  bench mm.tgl --type=T=bf16 -d M=$n,N=$n,K=$n
done
bench mmt.tgl --type=T=f32 -d M=4096,N=4096,K=4096
bench mmt.tgl --type=T=f16 -d M=4096,N=4096,K=4096
bench mm.tgl --type=T=f32 -d M=8205,N=5921,K=2949
bench mm.tgl --type=T=bf16 -d M=8205,N=5921,K=2949
bench mm.tgl --type=T=f32 -d M=256,N=256,K=131072
bench mm.tgl --type=T=bf16 -d M=16,N=4096,K=4096
bench mm.tgl --type=T=f32 -d M=32768,N=32768,K=64
bench conv.tgl -d N=16,C=64,H=56,W=56,O=64,KH=3,KW=3
bench conv.tgl -d N=16,C=3,H=224,W=224,O=64,KH=3,KW=3
bench conv.tgl -d N=16,C=256,H=14,W=14,O=256,KH=3,KW=3
