#!/bin/sh
# Installs launch and egressd from a release, after their SHA-256 was compared:
#
#   sh install.sh --version v1.2.3 [--to DIR] [--from URL-or-DIR]
#
# --from is where SHA256SUMS and the archives are: by default the releases of the
# project; a directory for a machine without a network. --to is ~/.local/bin unless
# given. Nothing is unpacked, and nothing in DIR is touched, before the sums agree.
set -eu

fail() { echo "install.sh: $*" >&2; exit 1; }

version='' to="${HOME:-}/.local/bin" from=''
while [ $# -gt 0 ]; do
  case $1 in
    --version | --to | --from) [ $# -ge 2 ] || fail "$1 needs a value" ;;
    *) fail "there is no $1: --version VERSION, --to DIR, --from URL-or-DIR" ;;
  esac
  case $1 in
    --version) version=$2 ;;
    --to) to=$2 ;;
    --from) from=$2 ;;
  esac
  shift 2
done
case $version in
  v[0-9]*.[0-9]*.[0-9]*) ;;
  *) fail "--version '$version': write v1.2.3" ;;
esac
case $version in
  *[!0-9A-Za-z.-]*) fail "--version '$version': write v1.2.3" ;;
esac
[ "$(uname -s)" = Linux ] || fail "launch and egressd run on Linux; on macOS, run this in a Linux VM"
case $(uname -m) in
  x86_64 | amd64) arch=amd64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) fail "there is no release for $(uname -m): build it with Go, as the README says" ;;
esac
[ -n "$from" ] || from="https://github.com/egressd/egressd/releases/download/$version"
archive=egressd_${version#v}_linux_$arch.tar.gz

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

# fetch NAME LIMIT: at most so many bytes of NAME, into the work directory
fetch() {
  case $from in
    https://*)
      if command -v curl >/dev/null; then
        curl --proto '=https' --tlsv1.2 -fsSL --max-time 600 --max-filesize "$2" -o "$work/$1" "$from/$1" || fail "$from/$1 cannot be fetched"
      elif command -v wget >/dev/null; then
        # wget follows a redirection to plain HTTP, and --https-only is about recursion: no proxy serves HTTP here.
        (ulimit -f "$(($2 / 512))" && wget -e use_proxy=on -e http_proxy=http://127.0.0.1:1/ -e no_proxy= -t 2 -T 60 -q -O "$work/$1" "$from/$1") ||
          fail "$from/$1 cannot be fetched"
      else
        fail "neither curl nor wget is here: fetch SHA256SUMS and $archive yourself, and give --from DIR"
      fi
      ;;
    *://*) fail "--from $from: only https:// or a directory" ;;
    *) cp -- "$from/$1" "$work/$1" || fail "$from/$1 cannot be read" ;;
  esac
}

fetch SHA256SUMS 65536
sum=$(sed -n "s/^\([0-9a-f]\{64\}\)  $archive\$/\1/p" "$work/SHA256SUMS")
[ "${#sum}" = 64 ] || fail "SHA256SUMS has no line for $archive, or more than one"
fetch "$archive" 268435456
got=$(sha256sum "$work/$archive")
got=${got%% *}
[ "$got" = "$sum" ] || fail "$archive is not what SHA256SUMS says: expected $sum, got $got. Nothing was installed"

mkdir "$work/new"
tar -xzf "$work/$archive" -C "$work/new" launch egressd || fail "$archive cannot be unpacked"
mkdir -p "$to"
for program in launch egressd; do
  [ -f "$work/new/$program" ] && [ ! -L "$work/new/$program" ] || fail "$archive has no program $program"
  chmod 0755 "$work/new/$program"
  cp -- "$work/new/$program" "$to/.$program.$$" && mv -f -- "$to/.$program.$$" "$to/$program" || fail "$to/$program cannot be written"
done
echo "installed $("$to/launch" version 2>/dev/null || echo "launch $version") in $to"
case :$PATH: in
  *":$to:"*) ;;
  *) echo "add it to PATH: export PATH=\"$to:\$PATH\"" ;;
esac
