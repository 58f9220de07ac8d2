#!/usr/bin/env bash
# clang-tidy over all sources, as .clang-tidy says. Usage: lint.sh CLANG_TIDY BUILD_DIRECTORY [FILE]...
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
[ $# -ge 2 ] && command -v -- "$1" >/dev/null || { echo 'no clang-tidy; install it: cmake/setup.sh lint' >&2; exit 1; }
tool=$1 build=$2
shift 2
[ -f "$build/compile_commands.json" ] || { echo "$build is not configured: cmake --preset release" >&2; exit 1; }
cd -- "$root"
if [ $# -gt 0 ]; then files=("$@"); else mapfile -t files < <(find config compute model comm actors -name '*.cpp' | sort); fi
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" "$tool" -p "$build" --quiet
echo "${#files[@]} files are clean"
