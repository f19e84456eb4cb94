# tile_bits.sh FOLDER FILE SIZES TILE...: the result y has the same bits in the emulator with each of these tiles.
set -eu
folder=$1 file=$2 sizes=$3
shift 3
for tile in "$@"; do
  options="-d $sizes --tensor-tile=$tile"
  tegula compile "$folder/$file" $options --target=sm_90a --emit=scheduled --stop-after=schedule |
    grep -q "shape = array<i64: $(echo "${tile%%[-/]*}" | sed 's/x/, /')>" || { echo "$file has no tile $tile"; exit 1; }
  tegula run "$folder/$file" $options --seed=7 --target=emulate "--out=y=$folder/$file.npy" > "$folder/out"
  [ "$tile" = "$1" ] && mv "$folder/$file.npy" "$folder/$file.first.npy" || cmp "$folder/$file.npy" "$folder/$file.first.npy"
done
