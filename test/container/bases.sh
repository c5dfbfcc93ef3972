#!/bin/bash
# Builds the two base images of the Dockerfile from Debian packages, without a container registry. Go is mounted at /usr/local/go during
# a build.
#   bases.sh WORK GO_IMAGE RUNTIME_IMAGE
# WORK is an empty directory for the file system; the images are stored by the command BUILDAH.
set -eu
work=$1 go_image=$2 runtime_image=$3
read -ra buildah <<<"${BUILDAH:-buildah}"

suite=bookworm
# The mirror of the suite in this machine's apt configuration.
mirror=$(apt-get indextargets --format '$(SITE) $(CODENAME)' 'Created-By: Packages' | awk -v suite=$suite '$2 == suite {print $1; exit}')
[ -n "$mirror" ] || { echo "apt has no sources of $suite: this makes images of Debian $suite" >&2; exit 1; }

debs=$(cd "$(dirname "$0")/../.." && pwd)/bin/debs # test/packages downloads the same ones
mkdir -p "$debs"
debootstrap --variant=minbase --cache-dir="$debs" $suite "$work/root" "$mirror" >"$work/log" || { tail "$work/log" >&2; exit 1; }

c=$("${buildah[@]}" from scratch)
"${buildah[@]}" add -q "$c" "$work/root" >/dev/null
"${buildah[@]}" commit -q "$c" "$runtime_image" >/dev/null

"${buildah[@]}" run "$c" -- sh -c 'apt-get update -q && apt-get install -q -y --no-install-recommends gcc libc6-dev ca-certificates' >"$work/log" 2>&1 ||
  { tail "$work/log" >&2; exit 1; }
"${buildah[@]}" config --env PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --env GOPATH=/go --env GOTOOLCHAIN=local "$c"
"${buildah[@]}" commit -q "$c" "$go_image" >/dev/null
"${buildah[@]}" rm "$c" >/dev/null
