#!/bin/bash
# Installs missing C compilers for packages of both architectures.
set -eu
case $(dpkg --print-architecture) in
amd64) other=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross) ;;
arm64) other=(gcc-x86-64-linux-gnu libc6-dev-amd64-cross) ;;
esac
exec "$(dirname "$0")/../test/install.sh" gcc libc6-dev "${other[@]}"
