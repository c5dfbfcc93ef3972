#!/bin/bash
# Builds deb and rpm into a directory, with and without NVML: build.sh DIRECTORY. Environment: VERSION (git describe), SOURCE_DATE_EPOCH (seconds),
# LDFLAGS, NFPM, ARCHES (amd64 arm64). Builds are reproducible.
set -eu
cd "$(dirname "$0")/.."
out=$1
: "${VERSION:?} ${SOURCE_DATE_EPOCH:?} ${NFPM:?}" "${ARCHES:=amd64 arm64}"
export SOURCE_DATE_EPOCH

# Version order for deb and rpm: untagged builds before the first release, a release candidate before its release, commits after a release
# behind it.
PACKAGE_VERSION=$(sed -E 's/^v//; /^[0-9]+\./!s/^/0.0.0~/; s/-(rc|alpha|beta)/~\1/; s/-/+/; s/-/./g' <<<"$VERSION")
mkdir -p "$out/doc"
CHANGELOG=$out/doc/changelog.gz
gzip -9n <CHANGELOG.md >"$CHANGELOG"
MAN=$out/doc/rdma_exporter.1.gz
gzip -9n <packaging/man/rdma_exporter.1 >"$MAN"
export PACKAGE_VERSION CHANGELOG MAN

# build ARCH DIRECTORY CGO_ENABLED
build() {
  local cc=
  if [ "$3" = 1 ] && [ "$1" != "$(go env GOHOSTARCH)" ]; then
    case $1 in
    amd64) cc=x86_64-linux-gnu-gcc ;;
    arm64) cc=aarch64-linux-gnu-gcc ;;
    esac
    command -v $cc >/dev/null || { echo "no $cc: packaging/packages.sh installs it" >&2; exit 1; }
  fi
  BINARY=$out/$2/rdma_exporter
  GOOS=linux GOARCH=$1 CGO_ENABLED=$3 ${cc:+env CC=$cc} go build -trimpath -buildvcs=false -ldflags "${LDFLAGS:--s -w}" -o "$BINARY" ./cmd/rdma_exporter
  THIRD_PARTY=$out/$2/THIRD_PARTY
  go run ./packaging/thirdparty -arch "$1" -cgo="$3" -o "$THIRD_PARTY"
  export BINARY THIRD_PARTY
}

pack() {
  for format in deb rpm; do
    "$NFPM" package --config packaging/nfpm.yaml --packager $format --target "$out/"
  done
}

for ARCH in $ARCHES; do
  export ARCH
  build "$ARCH" "linux-$ARCH" 1
  NAME=rdma-exporter OTHER=rdma-exporter-nogpu PROVIDES='' FLAVOUR='This build reads NVIDIA GPUs if the driver library is installed.' \
    DEB_LIBC='libc6 (>= 2.34)' RPM_LIBC='libc.so.6(GLIBC_2.34)(64bit)' pack
  build "$ARCH" "linux-$ARCH-nogpu" 0
  NAME=rdma-exporter-nogpu OTHER=rdma-exporter PROVIDES=rdma-exporter FLAVOUR='This build reads no GPUs and requires no libraries.' \
    DEB_LIBC='' RPM_LIBC='' pack
done
