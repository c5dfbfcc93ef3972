#!/bin/bash
# initramfs.sh KERNELROOT RELEASE MODULE OUT: the guest's root file system, from this machine's programs and KERNELROOT's modules.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin

kernelroot=$1 release=$2 driver=$3 out=$4
here=$(cd "$(dirname "$0")" && pwd)
# Modules that the guest loads at its start. crc32_generic: rxe requests it from the crypto core by name.
modules="virtio_pci virtio_net 9p 9pnet_virtio crc32_generic rdma_rxe ib_uverbs ib_umad rdma_ucm aer_inject veth"
# Modules that a test loads.
more="nvme_rdma nvmet_rdma sch_netem"
programs="rdma ip tc dcb ibv_rc_pingpong rping ib_write_bw kmod setpriv"
provider=rxe

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
mkdir -p "$root"/{etc/libibverbs.d,proc,sys,dev,run,tmp,mnt,usr/{bin,sbin,lib,lib64},"usr/lib/modules/$release/m"}
for dir in bin sbin lib lib64; do # as Debian has it: a library is found by either name
  ln -s "usr/$dir" "$root/$dir"
done
cp /bin/busybox "$root/bin/"
cp "$here/guest/init" "$root/init"
chmod 755 "$root/init"
echo "$modules" >"$root/etc/modules"
echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"

moddir=$root/lib/modules/$release
for m in $modules $more; do
  modprobe -d "$kernelroot" -S "$release" --show-depends "$m"
done | awk '$1 == "insmod" {print $2}' | sort -u | while read -r file; do
  case $file in
    *.xz) xz -dc "$file" >"$moddir/m/$(basename "$file" .xz)" ;;
    *) cp "$file" "$moddir/m/" ;;
  esac
done
cp "$driver" "$moddir/m/"
cp "$kernelroot/lib/modules/$release"/modules.{builtin,builtin.modinfo,order} "$moddir/"
depmod -b "$root" "$release"

# Programs by their path on this machine, libraries by their path in the guest.
libdir=$(dirname "$(ldconfig -p | awk '$1 == "libibverbs.so.1" && !n++ {print $NF}')")
plugin=$(echo "$libdir"/libibverbs/lib$provider-rdmav*.so)
files=("$plugin")
mkdir -p "$root$(dirname "$plugin")"
cp "$plugin" "$root$plugin"
cp "/etc/libibverbs.d/$provider.driver" "$root/etc/libibverbs.d/"
for p in $programs; do
  path=$(command -v "$p")
  cp -L "$path" "$root/usr/bin/"
  files+=("$path")
done
ldd "${files[@]}" | grep -oE '/[^ :]+\.so[^ :]*' | sort -u | while read -r lib; do
  [ -e "$root$lib" ] && continue
  mkdir -p "$root$(dirname "$lib")"
  cp -L "$lib" "$root$lib"
done

(cd "$root" && find . -print0 | cpio --null -o -H newc -R 0:0 --quiet) >"$out"
