# cpu_bits.sh FOLDER FILE SIZES: the result y of the CPU and of the emulator is the same.
set -eu
for target in cpu emulate; do
  tegula run "$1/$2" -d "$3" --seed=5 --target=$target "--out=y=$1/$target.npy"
done
cmp "$1/cpu.npy" "$1/emulate.npy"
