#!/bin/bash
# Installs the simulator of a fabric, a subnet manager and the diagnostic tools, where they are missing.
set -eu
exec "$(dirname "$0")/../install.sh" ibsim-utils opensm infiniband-diags
