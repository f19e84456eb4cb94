# same-sums.sh FOLDER SIZES: the results of both kernels are the same bits, on the CPU and on the emulator.
set -eu
for target in cpu emulate; do
  for kernel in products sums; do
    tegula run "$(dirname "$0")/summed-products.tgl" --kernel=$kernel -d "$2" --seed=3 --target=$target \
      --out=y="$1/$target-$kernel-y.npy" --out=z="$1/$target-$kernel-z.npy" --out=a="$1/$target-$kernel-a.npy" > "$1/shown"
    for name in y z a; do cmp "$1/cpu-products-$name.npy" "$1/$target-$kernel-$name.npy"; done
  done
done
