#!/bin/bash
# Installs what make dist and its test need, where it is missing: compilers for binaries with cgo of this processor and of arm64, what runs
# arm64, and what reads the man page and completes.
set -eu
exec "$(dirname "$0")/../install.sh" gcc libc6-dev gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static man-db mandoc zsh fish
