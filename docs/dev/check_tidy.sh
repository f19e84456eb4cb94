#!/usr/bin/env bash
# check_tidy.sh [--build=DIR] COMMIT | FILE...: says what clang-tidy-22 (scripts/packages.txt, .clang-tidy) finds in the sources that
# differ from COMMIT, or in those named. A header is checked by a source that includes it. Exit code 1 where it finds anything.
# DIR (default: build/dev) is a build folder whose generated headers are made.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=build/dev
[[ ${1:-} == --build=* ]] && build=${1#--build=} && shift
[[ $# -gt 0 ]] || { sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }
[[ -f $build/compile_commands.json ]] || { echo "check_tidy.sh: no $build/compile_commands.json: configure first" >&2; exit 2; }

files=("$@")
if [[ $# == 1 && ! -f $1 ]]; then
  changed=$(git diff --name-only --diff-filter=d "$1" -- '*.cpp' '*.h')
  mapfile -t files <<<"$changed"
fi

# The source that stands for a header: its own, else the first that includes it.
source_of() {
  if [[ $1 != *.h ]]; then
    echo "$1"
  elif [[ -f ${1%.h}.cpp ]]; then
    echo "${1%.h}.cpp"
  else
    git grep -l -F "#include \"$1\"" -- '*.cpp' | head -n 1 || true
  fi
}
for file in "${files[@]}"; do
  [[ -z $file ]] || source_of "$file"
done | sort -u | while read -r source; do
  grep -q -F "/${source#/}\"" "$build/compile_commands.json" && echo "$source" || echo "$source: not part of $build" >&2
done | xargs -r -P "$(nproc)" -n 1 clang-tidy-22 --config-file=.clang-tidy -p "$build" --quiet
