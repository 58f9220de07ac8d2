#!/usr/bin/env bash
# How many words of a text are words of another one, in percent, rounded down. Words are runs of three or more
# ASCII letters; capitals do not matter.
#
#   examples/known_words.sh TRAINING_TEXT SAMPLE
set -euo pipefail

[ $# -eq 2 ] || { echo "usage: $0 TRAINING_TEXT SAMPLE" >&2; exit 64; }
[ -s "$1" ] || { echo "$0: $1 is missing or empty" >&2; exit 1; }
[ -r "$2" ] || { echo "$0: $2 cannot be read" >&2; exit 1; }

words() { LC_ALL=C tr -cs 'A-Za-z' '\n' <"$1" | LC_ALL=C tr 'A-Z' 'a-z' | LC_ALL=C awk 'length($0) >= 3'; }

LC_ALL=C awk '
  NR == FNR { known[$0] = 1; next }
  { ++all; if ($0 in known) ++found }
  END {
    if (all == 0) { print "the sample has no word of three letters" > "/dev/stderr"; exit 1 }
    print int(100 * found / all)
  }
' <(words "$1" | sort -u) <(words "$2")
