# signal-write.sh FOLDER: interrupts a run as soon as its output begins to appear. Afterwards there is no file,
# or, where the signal came too late, a whole one.
folder=$1
elements=50000000
env --default-signal=INT tegula run "$folder/k.tgl" -d N=$elements --out y="$folder/y.npy" &
pid=$!
for _ in $(seq 1000); do
  ls "$folder" | grep -q '^y.npy' && break
  sleep 0.01
done
kill -s INT "$pid"
wait "$pid"
code=$?
left=$(ls "$folder" | grep '^y.npy')
[ "$code" = 130 ] && [ -z "$left" ] && exit 0
[ "$code" = 0 ] && [ "$left" = y.npy ] && [ "$(stat -c %s "$folder/y.npy")" = $((elements * 4 + 128)) ] && exit 0
echo "exit code $code, left: $left"
exit 1
