#!/bin/bash
# Stages the Helm chart of a release: chart.sh FOLDER VERSION. The rules and dashboards that files/ leads to become files of the chart, without
# what .helmignore names, as `helm package` makes them.
set -eu
to=$1/rdma-exporter
rm -rf "$to"
mkdir -p "$1"
cp -rL packaging/helm/rdma-exporter "$to"
while read -r pattern; do
  case $pattern in
  '' | '#'*) ;;
  *) rm -rf "$to"/$pattern ;; # the pattern is to be expanded
  esac
done <"$to/.helmignore"
sed -i "s/^version: .*/version: $2/; s/^appVersion: .*/appVersion: \"$2\"/" "$to/Chart.yaml"
