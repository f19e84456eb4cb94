# same-rows.sh FOLDER FILE TYPE SIZES OPTIONS: with this type for T all results of the CPU and of five runs on the device
# are the same.
set -eu
file=$1/program.tgl
sed "s/: T\[/: $3[/g; s/\bT(/$3(/g" "$2" > "$file"
run() { tegula run "$file" -d "$2" --seed=3 --target="$1" --out=o="$3.o.npy" --out=ot="$3.ot.npy" "${@:4}"; }
run cpu "$4" "$1/cpu" "${@:5}"
for n in 1 2 3 4 5; do
  run cuda "$4" "$1/cuda" "${@:5}"
  for name in o ot; do cmp "$1/cpu.$name.npy" "$1/cuda.$name.npy"; done
done
