#!/bin/bash
# Installs systemd-analyze if it is missing.
set -eu
exec "$(dirname "$0")/../install.sh" systemd
