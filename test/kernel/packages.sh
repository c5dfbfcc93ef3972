#!/bin/bash
# Installs the Debian packages that the test needs and that are missing, or those that are named. `packages.sh --list` only names all
# of them.
set -eu

packages=(
  gcc make kmod xz-utils                          # the test driver, the kernel's modules
  busybox-static cpio                             # the initramfs
  iproute2 ibverbs-utils ibverbs-providers        # goes into it
  qemu-system-x86
)
if [ "${1:-}" = --list ]; then
  printf '%s\n' "${packages[@]}"
  exit
fi

[ $# -eq 0 ] || packages=("$@")

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
