#!/bin/bash
# Installs the requirements of make dist and its test if they are missing: cgo compilers for this architecture and arm64, an arm64
# emulator, man page readers and shells.
set -eu
exec "$(dirname "$0")/../install.sh" gcc libc6-dev gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static man-db mandoc zsh fish
