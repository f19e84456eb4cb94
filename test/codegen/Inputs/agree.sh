# agree.sh FOLDER FILE TYPE SIZES OPTIONS: with this type for T, and that of its sums for S, all results of the CPU and of
# the emulator are the same. SCHEDULE: what the program's last kernel asks for.
set -eu
file=$1/program.tgl
case $3 in i8 | u8) sum=i32 ;; *) sum=f32 ;; esac
sed "s/: T\[/: $3[/g; s/: S\[/: $sum[/g; s/\bT(/$3(/g; s/\bS(/$sum(/g" "$(dirname "$0")/$2" > "$file"
[ -z "${SCHEDULE:-}" ] || sed -i "\$s/}$/  schedule { $SCHEDULE }\n}/" "$file"
names=$(tr '\n' ' ' < "$file" | sed 's/.*-> *(//; s/{.*//' | grep -o "[a-z]*: " | cut -d: -f1)
for target in cpu emulate; do
  outputs=()
  for name in $names; do outputs+=("--out=$name=$1/$target.$name.npy"); done
  tegula run "$file" -d "$4" --seed=3 --target=$target "${outputs[@]}" "${@:5}"
done
for name in $names; do cmp "$1/cpu.$name.npy" "$1/emulate.$name.npy"; done
