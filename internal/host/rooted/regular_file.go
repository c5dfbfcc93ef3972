package rooted

import (
	"slices"

	"golang.org/x/sys/unix"
)

// madeOnReading are file systems whose content the kernel or a user program generates on read, although stat(2) shows
// regular files: /proc/kmsg and tracing/trace_pipe return each line once, others start a device or block. Magic numbers
// are from include/uapi/linux/magic.h or the source of the file system.
var madeOnReading = []uint32{
	unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.SECURITYFS_MAGIC,
	unix.CGROUP_SUPER_MAGIC,
	unix.CGROUP2_SUPER_MAGIC, unix.BPF_FS_MAGIC, unix.FUSE_SUPER_MAGIC, unix.SELINUX_MAGIC,
	unix.SMACK_MAGIC, unix.AAFS_MAGIC,
	unix.EFIVARFS_MAGIC, unix.PSTOREFS_MAGIC, unix.RDTGROUP_SUPER_MAGIC, unix.BINFMTFS_MAGIC, unix.BINDERFS_SUPER_MAGIC,
	unix.XENFS_SUPER_MAGIC,
	unix.OPENPROM_SUPER_MAGIC, unix.USBDEVICE_SUPER_MAGIC, unix.AUTOFS_SUPER_MAGIC, unix.DEVPTS_SUPER_MAGIC,
	unix.NSFS_MAGIC, unix.PID_FS_MAGIC,
	unix.ANON_INODE_FS_MAGIC, unix.SOCKFS_MAGIC, unix.PIPEFS_MAGIC, unix.DMA_BUF_MAGIC,
	unix.SECRETMEM_MAGIC, unix.DEVMEM_MAGIC,
	0x62656570, // configfs (fs/configfs/mount.c)
	0x65735543, // fusectl (fs/fuse/control.c)
	0x6e667364, // nfsd (fs/nfsd/nfsctl.c)
	0x67596969, // rpc_pipefs (net/sunrpc/rpc_pipe.c)
	0x19800202, // mqueue (ipc/mqueue.c)
}

// Ordinary returns an error unless the descriptor (also an O_PATH one) is a regular file whose reading has no side
// effect.
func Ordinary(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || slices.Contains(madeOnReading, uint32(fs.Type)) {
		return unix.EINVAL
	}
	return nil
}
