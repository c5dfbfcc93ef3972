#!/bin/bash
# Installs the C compilers that packages for both architectures need, where they are missing.
set -eu
case $(dpkg --print-architecture) in
amd64) other=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross) ;;
arm64) other=(gcc-x86-64-linux-gnu libc6-dev-amd64-cross) ;;
esac
exec "$(dirname "$0")/../test/install.sh" gcc libc6-dev "${other[@]}"
