#!/bin/bash
# Installs a fabric simulator, a subnet manager and the diagnostic tools if they are missing.
set -eu
exec "$(dirname "$0")/../install.sh" ibsim-utils opensm infiniband-diags
