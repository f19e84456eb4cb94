# compile_all.sh FOLDER: compiles each program in it for the CPU and for a device.
set -u
for file in "$1"/*.tgl; do
  for target in cpu sm_90a; do
    timeout 600 tegula compile "$file" --target=$target -o /dev/null || { echo "$file for $target: exit code $?"; exit 1; }
  done
done
