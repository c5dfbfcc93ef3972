#!/bin/bash
# Installs the browser and a font if they are missing.
set -eu
exec "$(dirname "$0")/../install.sh" chromium fonts-dejavu-core
