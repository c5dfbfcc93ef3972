#!/bin/bash
# Installs the tools that build and boot a Debian tree and read packages, if they are missing.
set -eu
exec "$(dirname "$0")/../install.sh" debootstrap systemd systemd-container rpm gcc libc6-dev
