# kill-tune.sh CACHE COMMAND...: Ctrl-C while the command waits for the device; fails where it kept a schedule.
cache=$1
shift
export FAKE_CUDA_LOG=$cache.log
rm -rf "$cache" "$FAKE_CUDA_LOG"
TEGULA_CACHE_DIR=$cache FAKE_CUDA_HANG=launch "$@" >/dev/null 2>&1 &
process=$!
until grep -q cuLaunchKernel "$FAKE_CUDA_LOG" 2>/dev/null; do
  kill -0 $process || exit 1
  sleep 0.1
done
kill -INT $process
wait $process
[ $? != 0 ] && [ -z "$(find "$cache/tuned" -type f 2>/dev/null)" ]
