#!/bin/bash
# Unpacks Debian's Prometheus into a folder, without its service and without root: packages.sh FOLDER.
set -eu

folder=$1
[ -x "$folder/usr/bin/prometheus" ] && exit
mkdir -p "$folder"
cd "$folder"
apt-get download prometheus || {
  [ "$(id -u)" = 0 ] || { echo "no package lists: apt-get update, as root" >&2; exit 1; }
  apt-get update
  apt-get download prometheus
}
dpkg-deb --extract prometheus_*.deb .
rm prometheus_*.deb
