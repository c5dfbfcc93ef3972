#!/bin/bash
# Installs Debian's Prometheus and Alertmanager, where they are missing.
set -eu
exec "$(dirname "$0")/../install.sh" prometheus prometheus-alertmanager
