#!/bin/bash
# Installs the missing Debian packages that the test requires. `packages.sh --list` only lists them.
set -eu

packages=(
  gcc make kmod xz-utils libibverbs-dev           # the test driver, programs of queue pairs, the kernel's modules
  busybox-static cpio                             # the initramfs
  iproute2 ibverbs-utils ibverbs-providers rdmacm-utils perftest  # goes into it
  qemu-system-x86
)
if [ "${1:-}" = --list ]; then
  printf '%s\n' "${packages[@]}"
  exit
fi
exec "$(dirname "$0")/../install.sh" "${packages[@]}"
