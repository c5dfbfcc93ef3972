#!/bin/bash
# Installs what makes and boots a Debian tree, and reads packages, where it is missing.
set -eu
exec "$(dirname "$0")/../install.sh" debootstrap systemd systemd-container rpm gcc libc6-dev
