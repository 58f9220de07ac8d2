#!/usr/bin/env bash
# Real text to train on: the English fortunes of the Debian packages fortunes and fortunes-min.
#
#   examples/fortunes_text.sh DIRECTORY     writes DIRECTORY/train.txt and DIRECTORY/valid.txt
#
# A record ends with a line that holds a single %. Every twentieth record, by a hash of its own text, is kept
# for validation: the split is the same everywhere, and a record that stands in two files cannot be on both sides.
set -euo pipefail

[ $# -eq 1 ] || { echo "usage: $0 DIRECTORY" >&2; exit 64; }
out=$1
mkdir -p -- "$out"

# Only the plain files of these two packages: no index (.dat), no link (.u8), no other language.
mapfile -t files < <(dpkg -L fortunes fortunes-min 2>/dev/null | grep '^/usr/share/games/fortunes/[^/.]*$' |
  LC_ALL=C sort -u | while IFS= read -r file; do
    if [ -f "$file" ] && [ ! -L "$file" ]; then printf '%s\n' "$file"; fi
  done)
if [ ${#files[@]} -eq 0 ]; then
  echo "$0: no fortunes found; install them: cmake/setup.sh quickstart" >&2
  exit 1
fi

# Written beside the target and renamed, so that an interrupted start leaves no half a text. The generated
# hash needs exact integers only, far below 2^53, so every awk computes the same.
LC_ALL=C awk -v train="$out/train.txt.new" -v valid="$out/valid.txt.new" '
  BEGIN { for (i = 1; i < 256; ++i) code[sprintf("%c", i)] = i }
  function hash(text,    h, i, n) {
    n = length(text)
    for (i = 1; i <= n; ++i) h = (h * 31 + code[substr(text, i, 1)]) % 1000003
    return h
  }
  function finish() {
    if (record != "") printf "%s%%\n", record > (hash(record) % 20 == 0 ? valid : train)
    record = ""
  }
  FNR == 1 { finish() }
  $0 == "%" { finish(); next }
  { record = record $0 "\n" }
  END { finish() }
' "${files[@]}"
mv -f -- "$out/train.txt.new" "$out/train.txt"
mv -f -- "$out/valid.txt.new" "$out/valid.txt"
echo "text: $(wc -c <"$out/train.txt") bytes to train on, $(wc -c <"$out/valid.txt") to validate, in $out"
