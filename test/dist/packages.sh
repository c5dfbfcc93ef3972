#!/bin/bash
# Installs the Debian packages that make dist and its test need and that are missing. `packages.sh --list` only names all of them.
set -eu

packages=(
  gcc libc6-dev                                   # binaries with cgo for this processor,
  gcc-aarch64-linux-gnu libc6-dev-arm64-cross     # and for arm64
  qemu-user-static                                # runs arm64
  man-db mandoc zsh fish                          # reads the man page, completes
)
if [ "${1:-}" = --list ]; then
  printf '%s\n' "${packages[@]}"
  exit
fi

missing=()
for p in "${packages[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
done
[ ${#missing[@]} -gt 0 ] || exit 0

install=(apt-get install -y --no-install-recommends "${missing[@]}")
if [ "$(id -u)" != 0 ]; then
  echo "missing packages, as root: ${install[*]}" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update
"${install[@]}"
