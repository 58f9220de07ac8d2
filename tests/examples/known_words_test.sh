#!/usr/bin/env bash
# Usage: known_words_test.sh SCRIPT
set -euo pipefail

script=$1
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
failures=0

expect() {  # name, training text, sample, expected output
  printf '%b' "$2" >"$work/train text"
  printf '%b' "$3" >"$work/sample"
  local got
  got=$("$script" "$work/train text" "$work/sample" 2>&1) || got="exit $?: $got"
  if [[ $got != $4 ]]; then
    echo "$1: expected $4, got $got"
    failures=$((failures + 1))
  fi
}

expect 'all known' 'the cat sat' 'the cat' 100
expect 'none known' 'the cat sat' 'xyzzy plugh' 0
expect 'rounded down' 'one two three' 'one two xxx' 66
expect 'capitals do not matter' 'The Cat' 'THE cat the' 100
expect 'short words do not count' 'an ox sat' 'zz q sat' 100
expect 'each occurrence counts' 'sat' 'sat sat sat xxx' 75
expect 'a part of a word is not the word' 'catalogue' 'cat' 0
expect 'signs and lines part words' "don't-stop\nnow" 'don stop\nnow!' 100
expect 'no word at all' 'the cat' '12 -- a b' 'exit 1: *no word*'
expect 'nothing to compare with' '' 'the cat' 'exit 1: *empty*'

[ "$failures" -eq 0 ] && echo 'all as expected'
