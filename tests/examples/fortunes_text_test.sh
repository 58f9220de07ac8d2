#!/usr/bin/env bash
# Usage: fortunes_text_test.sh SCRIPT
set -euo pipefail

script=$1
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cd -- "$work"
fail() { echo "$*"; exit 1; }

# Another directory, another locale, a path with a blank: the same files.
"$script" 'first place' >/dev/null
LC_ALL=C.UTF-8 "$script" second >/dev/null
for part in train valid; do
  cmp "first place/$part.txt" "second/$part.txt" || fail "$part.txt is not the same the second time"
  [ -s "second/$part.txt" ] || fail "$part.txt is empty"
  [ ! -e "second/$part.txt.new" ] || fail 'an unfinished file was left'
  [ "$(tail -c 2 "second/$part.txt")" = '%' ] || fail "$part.txt does not end with a whole record"
  iconv -f UTF-8 -t UTF-8 "second/$part.txt" >/dev/null || fail "$part.txt is not UTF-8"
done

# About a twentieth is held out, and no record stands on both sides.
train=$(wc -c <second/train.txt) valid=$(wc -c <second/valid.txt)
[ $((valid * 100)) -gt $((train * 3)) ] && [ $((valid * 100)) -lt $((train * 8)) ] ||
  fail "$valid of $train bytes held out"
records() { LC_ALL=C awk '$0 == "%" { print r; r = ""; next } { r = r $0 "\\n" }' "$1" | LC_ALL=C sort -u; }
common=$(LC_ALL=C comm -12 <(records second/train.txt) <(records second/valid.txt) | wc -l)
[ "$common" -eq 0 ] || fail "$common records stand on both sides"

# Nothing of the source is lost: as many records as there are in the files.
here=$(($(grep -cx % second/train.txt) + $(grep -cx % second/valid.txt)))
there=$(for file in /usr/share/games/fortunes/*; do
  case $file in *.dat | *.u8) ;; *) printf '%%\n' && cat -- "$file" && printf '%%\n' ;; esac
done | LC_ALL=C awk '$0 == "%" { if (r) ++n; r = 0; next } { r = 1 } END { print n }')
[ "$here" -le "$there" ] && [ "$here" -gt 10000 ] || fail "$here records written, the files have $there"
echo "$here records"
