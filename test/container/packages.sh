#!/bin/bash
# Installs what builds images without an engine, where it is missing.
set -eu
exec "$(dirname "$0")/../install.sh" buildah debootstrap util-linux
