# signal.sh SIGNAL CODE: sends SIGNAL to a tegula that waits for input; it must exit with CODE.
folder=$(mktemp -d)
mkfifo "$folder/pipe"
echo 'kernel first(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }' > "$folder/first.tgl"
# Jobs in the background of a script ignore Ctrl-C; this one must not.
env --default-signal=INT tegula check "$folder/first.tgl" - < "$folder/pipe" &
pid=$!
exec 3> "$folder/pipe" # open for writing: the reader starts, and waits
sleep 1
kill -s "$1" "$pid"
(sleep 20; kill -KILL "$pid") 3>&- > /dev/null 2>&1 & # lit waits for whoever has its pipes
wait "$pid"
code=$?
kill $! 2> /dev/null
exec 3>&-
rm -rf "$folder"
[ $code = "$2" ] && exit 0
echo "expected exit code $2, got $code"
exit 1
