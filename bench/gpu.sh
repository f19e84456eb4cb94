#!/usr/bin/env bash
# Runs the kernel library on this machine's CUDA device and compares it with libtorch there.
#
#   bench/gpu.sh [--tegula=PATH] [--library=PATH] [--out=FOLDER] [--time] [--random=N] [FILE.tgl...]
#
# Four parts:
# 1. builds libtegula_torch against the torch of this machine's python3 (one file, about half a minute) and
#    runs `tegula bench --target=cuda` on every file (default: all of dsl/kernels): correctness alone, with
#    --time also speed;
# 2. the tests marked REQUIRES: gpu, with the `lit` of python3;
# 3. N random programs (default 500), with the `tegula-differential` beside the binary;
# 4. launches through the C interface on torch's tensors, with the libtegula.so beside the binary or --library.
# Writes FOLDER/gpu.jsonl (one object a case), FOLDER/gpu.json (all, with versions) and FOLDER/gpu.md (one
# page), and prints the page. `tegula` and `tegula-differential` need nothing but a driver; they may be built
# elsewhere and carried here.
# Exit code: 0 if all passed, 4 if something did not, 3 if something is missing.
set -uo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
tegula=$here/build/release/bin/tegula out=$here/build/gpu mode=--check random=500 library= files=()
for argument in "$@"; do
  case $argument in
  --tegula=*) tegula=${argument#*=} ;;
  --library=*) library=${argument#*=} ;;
  --out=*) out=${argument#*=} ;;
  --time) mode= ;;
  --random=*) random=${argument#*=} ;;
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

# lit's site file is what CMake would have configured.
mkdir -p "$out/lit"
cat > "$out/lit/lit.site.cfg.py" <<END
config.build_root = r"$out"
config.source_root = r"$here"
config.tools_dir = r"$(dirname "$tegula")"
config.filecheck = "FileCheck"
config.llvm_tools_dir = ""
lit_config.load_config(config, r"$here/test/lit.cfg.py")
END
if python3 -c 'import lit' 2> /dev/null; then
  python3 -c 'from lit.main import main; main()' -v --filter='gpu/' "$out/lit" > "$out/lit.log" 2>&1 || status=4
else
  echo "gpu.sh: python3 has no lit: the tests marked REQUIRES: gpu were not run" | tee "$out/lit.log" >&2
  status=3
fi
"$(dirname "$tegula")/tegula-differential" --target=cuda --count="$random" > "$out/random.log" 2>&1 || status=4
tail -n 4 "$out/lit.log"
tail -n 4 "$out/random.log"
library=${library:-$(dirname "$tegula")/../lib/libtegula.so}
if [ -e "$library" ]; then
  python3 "$here/test/capi/torch_process.py" --library="$library" --target=cuda > "$out/capi.log" 2>&1 || status=4
else
  echo "no $library: not tested" > "$out/capi.log"
  status=3
fi
tail -n 4 "$out/capi.log"

python3 "$here/bench/gpu_report.py" "$out" "$tegula" "$mode" || exit 3
exit $status
