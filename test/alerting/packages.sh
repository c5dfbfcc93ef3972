#!/bin/bash
# Installs Debian's Prometheus and Alertmanager, if they are missing.
set -eu
exec "$(dirname "$0")/../install.sh" prometheus prometheus-alertmanager
