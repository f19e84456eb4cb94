#!/usr/bin/env bash
# run_target.sh TARGET FOUND SECONDS CORPUS...: fuzzes for that long. New inputs are kept in the folder FOUND, as is one that the
# target fails on, which is shown as well: where the build tree is gone it is all that is left.
set -u
target=$1 found=$2 seconds=$3
shift 3
mkdir -p "$found"
rm -f "$found"/failed-*
"$target" -max_total_time="$seconds" -timeout=100 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 \
  -artifact_prefix="$found/failed-" "$found" "$@"
status=$?
for input in "$found"/failed-*; do
  [ $status != 0 ] && [ -e "$input" ] || continue
  echo "The input $input (run the target with it alone; bytes that are no text are shown as by cat -v):"
  cat -v "$input"
done
exit $status
