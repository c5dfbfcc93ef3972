#!/bin/bash
# Stages the Helm chart of a release: chart.sh DIRECTORY VERSION. Symbolic links in files/ become files of the chart; files in .helmignore are left out,
# as `helm package` does.
set -eu
to=$1/rdma-exporter
rm -rf "$to"
mkdir -p "$1"
cp -rL packaging/helm/rdma-exporter "$to"
while read -r pattern; do
  case $pattern in
  '' | '#'*) ;;
  *) rm -rf "$to"/$pattern ;; # unquoted: the pattern must expand
  esac
done <"$to/.helmignore"
sed -i "s/^version: .*/version: $2/; s/^appVersion: .*/appVersion: \"$2\"/" "$to/Chart.yaml"
