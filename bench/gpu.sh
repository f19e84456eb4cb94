#!/usr/bin/env bash
# Runs the kernel library on this machine's CUDA device and compares it with libtorch there.
#
#   bench/gpu.sh [--tegula=PATH] [--library=PATH] [--out=FOLDER] [--time] [FILE.tgl...]
#
# Builds libtegula_torch against the torch of this machine's python3 (one file, about half a minute), then
# runs `tegula bench --target=cuda` on every file (default: all of dsl/kernels): correctness alone, with
# --time also speed. Writes FOLDER/gpu.jsonl (one object a case), FOLDER/gpu.json (all, with versions) and
# FOLDER/gpu.md (one page), and prints the page. The `tegula` binary needs nothing but a driver; it may be
# built elsewhere and carried here. Where there is a libtegula.so beside it (or --library names one), launches
# through the C interface on torch's tensors are tested too.
# Exit code: 0 if every case passed, 4 if one did not, 3 if something is missing.
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
tegula=$here/build/release/bin/tegula out=$here/build/gpu mode=--check library= files=()
for argument in "$@"; do
  case $argument in
  --tegula=*) tegula=${argument#*=} ;;
  --library=*) library=${argument#*=} ;;
  --out=*) out=${argument#*=} ;;
  --time) mode= ;;
  -*) echo "gpu.sh: unknown option $argument" >&2; exit 2 ;;
  *) files+=("$argument") ;;
  esac
done
[ ${#files[@]} -gt 0 ] || files=("$here"/dsl/kernels/*/*.tgl)
[ -x "$tegula" ] || { echo "gpu.sh: no tegula at $tegula (give --tegula=PATH)" >&2; exit 3; }
mkdir -p "$out"

torch=$(python3 -c 'import torch, os; print(os.path.dirname(torch.__file__))') ||
  { echo "gpu.sh: python3 has no torch" >&2; exit 3; }
abi=$(python3 -c 'import torch; print(int(torch.compiled_with_cxx11_abi()))')
export TEGULA_TORCH=$out/libtegula_torch.so
if [ ! -e "$TEGULA_TORCH" ] || [ "$here/bench/torch/TorchRef.cpp" -nt "$TEGULA_TORCH" ]; then
  echo "gpu.sh: building libtegula_torch against $torch"
  ${CXX:-g++} -std=c++20 -O2 -fPIC -shared -D_GLIBCXX_USE_CXX11_ABI="$abi" -I"$here" \
    -I"$torch/include" -I"$torch/include/torch/csrc/api/include" "$here/bench/torch/TorchRef.cpp" \
    -L"$torch/lib" -ltorch -ltorch_cpu -lc10 -Wl,-rpath,"$torch/lib" -Wl,--allow-shlib-undefined \
    -o "$TEGULA_TORCH" > "$out/torch-build.log" 2>&1 ||
    { echo "gpu.sh: that failed; see $out/torch-build.log" >&2; tail -5 "$out/torch-build.log" >&2; exit 3; }
fi

: > "$out/gpu.jsonl"
: > "$out/gpu.log"
status=0
for file in "${files[@]}"; do
  "$tegula" bench --target=cuda --json --deadline=120 $mode "$file" >> "$out/gpu.jsonl" 2>> "$out/gpu.log"
  code=$?
  if [ $code -ne 0 ]; then
    echo "gpu.sh: $file: exit code $code"
    status=4
  fi
done
library=${library:-$(dirname "$tegula")/../lib/libtegula.so}
if [ -e "$library" ]; then
  python3 "$here/test/capi/torch_process.py" --library="$library" --target=cuda || status=4
else
  echo "gpu.sh: no $library: the C interface is not tested"
fi
python3 "$here/bench/gpu_report.py" "$out" "$tegula" "$mode" || exit 3
exit $status
