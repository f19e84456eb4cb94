# signal-run.sh FOLDER COMMAND...: runs a command that takes long, interrupts it after a second, and expects
# the exit code 130 and no file in FOLDER that was not there before.
folder=$1
shift
before=$(ls -A "$folder" | wc -l)
# Jobs in the background of a script ignore Ctrl-C; this one must not.
env --default-signal=INT "$@" &
pid=$!
sleep 1
if ! kill -s INT "$pid"; then
  echo "the command ended by itself"
  exit 1
fi
(sleep 20; kill -KILL "$pid") > /dev/null 2>&1 & # lit waits for whoever has its pipes
watch=$!
wait "$pid"
code=$?
kill "$watch" 2> /dev/null
after=$(ls -A "$folder" | wc -l)
[ "$code" = 130 ] && [ "$before" = "$after" ] && exit 0
echo "expected exit code 130 and $before files, got $code and $after: $(ls -A "$folder")"
exit 1
