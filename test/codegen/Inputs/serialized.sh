# serialized.sh FOLDER OPTIONS: code of the options for sm_90a uses warpgroups, and ptxas says of none of it that it is serialized.
set -eu
folder=$1
tegula compile "${@:2}" --align=16 --target=sm_90a --emit=ptx -o "$folder/code.ptx"
grep -q wgmma.mma_async "$folder/code.ptx"
ptxas -v -arch=sm_90a "$folder/code.ptx" -o "$folder/code.cubin" > "$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
! grep serialized "$folder/log"
