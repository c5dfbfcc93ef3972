#!/bin/bash
# Builds the last commit again under different conditions and compares the checksums with those of an artefact directory:
# reproduce.sh DIRECTORY [VARIABLE=VALUE of make]...
# Different are the directory, the build and module caches, the home directory, the user name, the time zone, the language, the umask, flags of
# Go without effect on its output, and where a user namespace is permitted the host name.
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
mkdir -p "$tmp/another folder/of the same source" "$tmp/home"
# Modules come from the downloads of this machine where it has them.
modules=file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)
cd "$tmp/another folder/of the same source"
git -C "$OLDPWD" archive HEAD | tar -x

host=()
unshare --map-root-user --uts true 2>/dev/null && host=(unshare --map-root-user --uts sh -c 'hostname another-host && exec "$@"' sh)
umask 077
env HOME="$tmp/home" USER=another LOGNAME=another TZ=Pacific/Kiritimati LC_ALL=C.UTF-8 \
  GOCACHE="$tmp/cache" GOPATH="$tmp/go" GOMODCACHE="$tmp/modules" GOPROXY="$modules" GOFLAGS='-modcacherw -p=3' \
  "${host[@]}" make "$@" dist >&2
diff "$dist/SHA256SUMS" bin/dist/SHA256SUMS || { echo "build is not reproducible: checksums differ" >&2; exit 1; }
echo "reproduced: $(wc -l <bin/dist/SHA256SUMS) files"
