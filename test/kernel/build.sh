#!/bin/bash
# Builds vmlinuz and initramfs of the virtual machine in the cache, and prints their directory.
# KERNEL is the Debian kernel series. Does not require root.
set -eu
PATH=$PATH:/usr/sbin:/sbin

here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/rdma_exporter/kernel
series=${KERNEL:-6.12}

# The newest package of the series: by its metapackage, or by the release's if that is the same series.
image_package() {
  local meta image
  for meta in "linux-image-$series-amd64" linux-image-amd64; do
    image=$(apt-cache depends "$meta" 2>/dev/null | awk '/Depends:/ {print $2; exit}')
    case $image in "linux-image-$series."*) echo "$image"; return ;; esac
  done
  return 1
}

update() {
  [ "$(id -u)" = 0 ] && apt-get update
}

# Sources of the driver and of the guest, and the packages of the guest's programs.
inputs_hash() {
  (cd "$here"; sha256sum build.sh initramfs.sh guest/* driver/*; ./packages.sh --list | xargs dpkg-query -W) | sha256sum | cut -c1-16
}

# Downloads the packages of kernel release $1 into the directory $2.
download() {
  local headers=linux-headers-$1 common_and_kbuild
  mapfile -t common_and_kbuild < <(apt-cache depends "$headers" | awk '/Depends: linux-(headers|kbuild)-/ {print $2}')
  mkdir -p "$2"
  # apt's own user cannot read a cache below root's home.
  (cd "$2" && apt-get -o APT::Sandbox::User=root download "linux-image-$1" "$headers" "${common_and_kbuild[@]}")
}

# Builds the directory $2 from the packages of kernel release $1 in the directory $3.
unpack() {
  local release=$1 dir=$2 debs=$3 deb
  for deb in "$debs"/*.deb; do
    dpkg-deb -x "$deb" "$dir.tmp"
  done
  depmod -b "$dir.tmp" "$release"
  # The headers expect to be in /usr/src.
  sed -i "s#/usr/src/#$dir/usr/src/#" "$dir.tmp/usr/src/linux-headers-$release/Makefile"
  mv "$dir.tmp" "$dir"
}

build() {
  local release=$1 kernel=$2 dir=$3
  rm -rf "$dir.tmp"
  mkdir -p "$dir.tmp/driver"
  cp "$here"/driver/* "$dir.tmp/driver/"
  # The image package has no vmlinux to take BTF from.
  make -s -C "$kernel/usr/src/linux-headers-$release" M="$dir.tmp/driver" CONFIG_DEBUG_INFO_BTF_MODULES= modules
  strip -g "$dir.tmp/driver/fakerdma.ko"
  "$here/initramfs.sh" "$kernel" "$release" "$dir.tmp/driver/fakerdma.ko" "$dir.tmp/initramfs"
  cp "$kernel/boot/vmlinuz-$release" "$dir.tmp/vmlinuz"
  rm -r "$dir.tmp/driver"
  rm -rf "$cache/boot-$series."*-????????????????
  mv "$dir.tmp" "$dir"
}

prepare() {
  local image release
  image=$(image_package) || { update && image=$(image_package); } || { echo "no package of kernel $series here" >&2; exit 1; }
  if [ ! -d "$cache/$image" ]; then
    rm -rf "$cache/linux-image-$series."* "$cache/debs"
    if ! download "${image#linux-image-}" "$cache/debs"; then
      # The package lists are outdated.
      update
      image=$(image_package)
      rm -rf "$cache/debs"
      download "${image#linux-image-}" "$cache/debs"
    fi
    unpack "${image#linux-image-}" "$cache/$image" "$cache/debs"
    rm -r "$cache/debs"
  fi
  release=${image#linux-image-}
  boot=$cache/boot-$release-$(inputs_hash)
  [ -d "$boot" ] || build "$release" "$cache/$image" "$boot"
}

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
prepare >&2
echo "$boot"
