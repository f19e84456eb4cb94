# twins.sh FOLDER: each .cu there has a program, each program a .cu.
cd "$1" || exit 1
for twin in *.cu; do
  [ -e "programs/${twin%.cu}.tgl" ] || { echo "there is no program for $twin"; exit 1; }
done
for program in programs/*.tgl; do
  name=$(basename "$program" .tgl)
  [ -e "$name.cu" ] || { echo "there is no twin for $program"; exit 1; }
done
tegula check programs/*.tgl
