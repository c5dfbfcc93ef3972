#!/bin/bash
# Installs the tools that build images without a container engine if they are missing.
set -eu
exec "$(dirname "$0")/../install.sh" buildah debootstrap util-linux
