#!/usr/bin/env bash
# replay_corpus.sh TEGULA FOLDER...: checks each file of the folders as a program. Exit codes are 0, and 1 of a wrong program.
set -u
tegula=$1 failed=0 files=0
shift
for file in $(find "$@" -type f | sort); do
  files=$((files + 1))
  "$tegula" check - <"$file" >/dev/null 2>&1
  status=$?
  if [ $status -gt 1 ]; then
    echo "$file: exit code $status"
    failed=$((failed + 1))
  fi
done
echo "$files files, $failed failed"
[ $failed = 0 ] && [ $files != 0 ]
