#!/usr/bin/env bash
# check_format.sh [--fix]: says which sources clang-format-22 (scripts/packages.txt) would write otherwise; --fix writes them.
# Exit code 1 where there are any.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
mode=(--dry-run --Werror)
[[ ${1:-} == --fix ]] && mode=(-i)
# What tree-sitter writes stays as it is.
git ls-files -z '*.cpp' '*.h' '*.hpp' ':!editors/tree-sitter-tegula/src' | xargs -0 -P "$(nproc)" -n 40 clang-format-22 "${mode[@]}"
