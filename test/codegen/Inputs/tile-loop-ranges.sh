# tile-loop-ranges.sh FOLDER SIZES OPTIONS "PARAMETER CODE"...: with each parameter of tile-loop-ranges.tgl the emulator's results
# are right, and the first head's have the roundings of the loop, which they have without it, or of the code that runs again.
# SCHEDULE: what the kernel asks for.
set -eu
cp "$(dirname "$0")/tile-loop-ranges.tgl" "$1/program.tgl"
[ -z "${SCHEDULE:-}" ] || sed -i "\$s/}$/  schedule { $SCHEDULE }\n}/" "$1/program.tgl"
run() { tegula run "$1/program.tgl" -d "$2" --seed=1 --target=emulate "${@:3}"; }
run "$1" "$2" $3 > "$1/ordinary.txt"
for one in "${@:4}"; do
  run "$1" "$2" $3 -p "${one% *}" > "$1/case.txt"
  grep -Eq '^loss: f64\[\] = ([1-9](\.[0-9]*)?e-0[789]|0)$' "$1/case.txt"
  code=again
  cmp -s <(grep '^first' "$1/ordinary.txt") <(grep '^first' "$1/case.txt") && code=loop
  [ "$code" = "${one##* }" ] || { echo "$one: $code"; exit 1; }
done
