#!/bin/bash
# Writes the current digest of each image that the build, the workflows and the Compose setup name: images.sh CRANE [FILE]...
# Exits with 1 if it changed a file.
set -eu
crane=$1
shift
[ $# -gt 0 ] || set -- Dockerfile .github/workflows/*.yml packaging/compose/compose.yaml

changed=0
for image in $(grep -hoE '[a-z0-9][a-z0-9.:/_-]*:[A-Za-z0-9._-]+@sha256:[0-9a-f]{64}' "$@" | sort -u); do
  tag=${image%@*}
  digest=$("$crane" digest "$tag")
  [ "$image" != "$tag@$digest" ] || continue
  sed -i "s|\b$image|$tag@$digest|" "$@"
  echo "$tag is now $digest"
  changed=1
done
exit $changed
