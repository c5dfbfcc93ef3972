#!/bin/bash
# Builds the last commit in another folder with an empty build cache and compares the checksums with those of an artefact folder:
# reproduce.sh FOLDER [VARIABLE=VALUE of make]...
set -eu

dist=$PWD/$1
shift
[ -f "$dist/SHA256SUMS" ] || { echo "$dist/SHA256SUMS is missing: run make dist first" >&2; exit 1; }
if [ -n "$(git status --porcelain)" ]; then
  echo "uncommitted changes: commit them, then run make dist again" >&2
  exit 1
fi

tmp=$(mktemp -d)
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
mkdir -p "$tmp/another folder/of the same source"
cd "$tmp/another folder/of the same source"
git -C "$OLDPWD" archive HEAD | tar -x
umask 077
GOCACHE=$tmp/cache make "$@" dist >&2
diff "$dist/SHA256SUMS" bin/dist/SHA256SUMS || { echo "build is not reproducible: checksums differ" >&2; exit 1; }
echo "reproduced: $(wc -l <bin/dist/SHA256SUMS) files"
