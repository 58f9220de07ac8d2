#!/usr/bin/env bash
# Installs the Debian packages of the named groups that are not installed yet (list: packages.txt beside this
# file). Usage: cmake/setup.sh GROUP...   Needs no answer on the keyboard; as root, or with sudo.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
list=$here/packages.txt

fail() {
  printf 'setup: %s\n' "$@" >&2
  exit 1
}

[ $# -gt 0 ] || fail 'no group named' "groups: $(sed 's/#.*//' "$list" | awk 'NF {print $2}' | sort -u | tr '\n' ' ')"

missing=()
for group in "$@"; do
  wanted=$(sed 's/#.*//' "$list" | awk -v group="$group" '$2 == group {print $1}')
  [ -n "$wanted" ] || fail "cmake/packages.txt has no group \"$group\""
  for package in $wanted; do
    # The architecture's name is not asked for: some packages are the same for all.
    state=$(dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2>/dev/null || true)
    grep -qx installed <<<"$state" || missing+=("$package")
  done
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: all packages are installed ($*)"
  exit 0
fi

command -v apt-get >/dev/null ||
  fail 'this is not a Debian system (no apt-get)' "install by other means: ${missing[*]}"
as_root=(env)
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null ||
    fail 'packages are missing, and this is neither root nor a system with sudo' \
      "as root: apt-get install ${missing[*]}"
  # -n: never ask for a password where nobody can answer.
  if [ -t 0 ]; then as_root=(sudo env); else as_root=(sudo -n env); fi
fi

echo "setup: installing ${missing[*]}"
apt() {
  "${as_root[@]}" DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 apt-get -q -y \
    -o DPkg::Lock::Timeout=300 -o APT::Color=0 -o Dpkg::Use-Pty=0 "$@" </dev/null
}
install() { apt install --no-install-recommends "${missing[@]}"; }

# The lists of a fresh system are empty, those of an old one name files that are gone: then fetch them once.
# A source of no concern to us may be out of order, so only the installation is the judge.
if ! install; then
  echo 'setup: fetching the package lists and trying once more'
  apt update || echo 'setup: not all package lists could be fetched, going on' >&2
  install || fail "the packages could not be installed: ${missing[*]}" \
    'the lines above name the cause; usual ones: no network, no Debian 12 in /etc/apt/sources.list' \
    'then run the same command again: what is installed already stays'
fi
