#!/bin/bash
# Makes the two images that the Dockerfile builds on of Debian packages: no container registry is asked. Go itself is mounted at /usr/local/go
# in a build.
#   bases.sh WORK GO_IMAGE RUNTIME_IMAGE
# WORK is an empty directory for the file system; the images go to the storage that BUILDAH, a command, works on.
set -eu
work=$1 go_image=$2 runtime_image=$3
read -ra buildah <<<"${BUILDAH:-buildah}"

suite=bookworm
# The mirror that this machine's apt has for the suite.
mirror=$(apt-get indextargets --format '$(SITE) $(CODENAME)' 'Created-By: Packages' | awk -v suite=$suite '$2 == suite {print $1; exit}')
[ -n "$mirror" ] || { echo "apt has no sources of $suite: this makes images of Debian $suite" >&2; exit 1; }

debootstrap --variant=minbase $suite "$work/root" "$mirror" >"$work/log" || { tail "$work/log" >&2; exit 1; }

c=$("${buildah[@]}" from scratch)
"${buildah[@]}" add -q "$c" "$work/root" >/dev/null
"${buildah[@]}" commit -q "$c" "$runtime_image" >/dev/null

"${buildah[@]}" run "$c" -- sh -c 'apt-get update -q && apt-get install -q -y --no-install-recommends gcc libc6-dev ca-certificates' >"$work/log" 2>&1 ||
  { tail "$work/log" >&2; exit 1; }
"${buildah[@]}" config --env PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --env GOPATH=/go --env GOTOOLCHAIN=local "$c"
"${buildah[@]}" commit -q "$c" "$go_image" >/dev/null
"${buildah[@]}" rm "$c" >/dev/null
