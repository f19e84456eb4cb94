# softmax.sh FOLDER FILE TYPE SIZES OPTIONS: with this type for T the softmax of the program runs as a tile loop, and its results are
# those of the equations in f64: on the emulator and, with the equations as they are, on the CPU. ATTRIBUTE: what the loop has where it is
# no row_tile. SCHEDULE: what the program's last kernel asks for.
set -eu
file=$1/softmax.tgl
sed "s/: T\[/: $3[/g; s/\bT(/$3(/g" "$(dirname "$0")/$2" > "$file"
[ -z "${SCHEDULE:-}" ] || sed -i "\$s/}$/  schedule { $SCHEDULE }\n}/" "$file"
tegula compile "$file" -d "$4" "${@:5}" --target=sm_90a | grep -q "${ATTRIBUTE:-row_tile}"
for target in cpu emulate; do
  tegula run "$file" -d "$4" --seed=1 --target=$target "${@:5}" > "$1/$target.txt"
  grep -q '^off: i64\[1\] = 0$' "$1/$target.txt"
done
cmp <(grep '^none' "$1/cpu.txt") <(grep '^none' "$1/emulate.txt")
