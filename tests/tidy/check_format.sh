#!/usr/bin/env bash
# Every source has the layout of .clang-format. Usage: check_format.sh CLANG_FORMAT
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
cd -- "$root"
[ $# -eq 1 ] && command -v -- "$1" >/dev/null || { echo 'no clang-format; install it: cmake/setup.sh tests' >&2; exit 1; }

mapfile -d '' -t files < <(find config compute model comm actors tests \( -name '*.cpp' -o -name '*.hpp' \) -print0 | sort -z)
[ ${#files[@]} -gt 100 ] || { echo "only ${#files[@]} sources found under $root" >&2; exit 1; }
if ! "$1" --dry-run -Werror "${files[@]}" >/dev/null 2>&1; then
  for file in "${files[@]}"; do "$1" --dry-run -Werror "$file" 2>/dev/null || echo "not formatted: $file"; done
  echo 'to do: clang-format -i FILE'
  exit 1
fi
echo "${#files[@]} files are formatted"
