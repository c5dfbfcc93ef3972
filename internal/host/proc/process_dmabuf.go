package proc

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/snapshot/accel"
)

const (
	// dmabufLink begins the link of a descriptor of a DMA-BUF; a name that the process has set follows (dmabuffs_dname,
	// drivers/dma-buf/dma-buf.c).
	dmabufLink = "/dmabuf:"
	// maxDMABUFs limits the DMA-BUFs that are read per process and scan. A read takes some microseconds, and no lock but
	// that of the name.
	maxDMABUFs = 256
)

// dmabufs sums up descriptors of DMA-BUFs by exporter of GPU memory: /proc/PID/fdinfo, which has the permission of
// /proc/PID/fd since Linux 5.15. What cannot be read is left out: it may have been closed meanwhile. kfd: the process
// holds /dev/kfd.
func dmabufsOf(t *rooted.Tree, pid int, descriptors []string, kfd bool) []accel.DMABUFs {
	r, rel := t.At("proc/" + strconv.Itoa(pid) + "/fdinfo")
	dir, err := r.Open(rel, unix.O_DIRECTORY)
	if err != nil {
		return nil
	}
	defer unix.Close(dir)
	sums, seen := map[string]accel.DMABUFs{}, map[string]bool{}
	for _, name := range descriptors[:min(len(descriptors), maxDMABUFs)] {
		one := readDMABUF(dir, name)
		if !exportsGPUMemory(one.exporter, kfd) || one.inode != "" && seen[one.inode] {
			continue
		}
		seen[one.inode] = true
		sum := sums[one.exporter]
		sum.Exporter, sum.Buffers, sum.Bytes = one.exporter, sum.Buffers+1, sum.Bytes+one.size
		sums[one.exporter] = sum
	}
	var out []accel.DMABUFs
	for _, exporter := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, sums[exporter])
	}
	return out
}

func exportsGPUMemory(exporter string, kfd bool) bool {
	return exporter == accel.ExporterNVIDIA || exporter == accel.ExporterDRM && kfd
}

// dmabuf is one descriptor. inode is unique to the buffer; empty before Linux 5.14.
type dmabuf struct {
	exporter, inode string
	size            uint64
}

// readDMABUF reads /proc/PID/fdinfo/N; zero where that fails.
func readDMABUF(dir int, name string) dmabuf {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return dmabuf{}
	}
	defer unix.Close(fd)
	b, err := rooted.Pread(fd, nil, true)
	if err != nil {
		return dmabuf{}
	}
	return parseDMABUF(string(b))
}

// parseDMABUF parses "size:\t4194304", "exp_name:\tnv_dmabuf" (dma_buf_show_fdinfo) and "ino:\t17" (fs/proc/fd.c). The
// name that the process has set comes last and may have any text: of two lines with one key the first one counts.
func parseDMABUF(text string) (d dmabuf) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":\t")
		switch {
		case key == "exp_name" && d.exporter == "":
			d.exporter = value
		case key == "ino" && d.inode == "":
			d.inode = value
		case key == "size" && d.size == 0:
			if n, err := strconv.ParseUint(value, 10, 64); err == nil {
				d.size = n
			}
		case key == "name":
			return d
		}
	}
	return d
}
