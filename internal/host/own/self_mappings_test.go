package own

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Code, constants, relocations that the loader has written (resident, and swapped out), data; the code of another
// program with a breakpoint, which the kernel puts into a page of its own.
const smapsOfPrograms = `00400000-014e0000 r-xp 00000000 fe:00 1 /opt/a program
Rss:               14976 kB
Private_Dirty:         0 kB
Anonymous:             0 kB
Swap:                  0 kB
SwapPss:               0 kB
VmFlags: rd ex mr mw me
014e0000-0293c000 r--p 010e0000 fe:00 1 /opt/a program
Rss:               17392 kB
Anonymous:             0 kB
Swap:                  0 kB
0293c000-02940000 r--p 0253c000 fe:00 1 /opt/a program
Rss:                  16 kB
Anonymous:            16 kB
Swap:                  0 kB
02940000-02944000 r--p 02540000 fe:00 1 /opt/a program
Rss:                   0 kB
Anonymous:             0 kB
Swap:                 16 kB
02944000-02a16000 rw-p 02544000 fe:00 1 /opt/a program
Rss:                 744 kB
Anonymous:             0 kB
Swap:                  0 kB
7f0000000000-7f0000001000 ---p 00000000 fe:00 1 /opt/a program
Anonymous:             0 kB
7f0000001000-7f0000002000 r-xp 00000000 fe:00 2 /lib/libc.so.6
Anonymous:             0 kB
7f0000002000-7f0000003000 r-xp 00000000 00:00 0 [vdso]
Anonymous:             0 kB
7f0000003000-7f0000004000 r-xp 00000000 fe:00 3 /opt/another
Anonymous:             4 kB
`

func TestCleanMappings(t *testing.T) {
	got := cleanMappings(smapsOfPrograms, "/opt/a program")
	if want := []mapping{{0x400000, 0x14e0000}, {0x14e0000, 0x293c000}}; !slices.Equal(got, want) {
		t.Errorf("%x, want code and constants %x", got, want)
	}
	for _, file := range []string{"/opt/another", "/missing", ""} {
		if got := cleanMappings(smapsOfPrograms, file); len(got) > 0 {
			t.Errorf("%s: %x", file, got)
		}
	}
}

// TestUnmapFile unmaps the pages of a file from a mapping that is only read, and not from one that was written before
// it became read-only.
func TestUnmapFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "program")
	content := bytes.Repeat([]byte("code"), 1<<16)
	if err := os.WriteFile(file, content, 0o755); err != nil {
		t.Fatal(err)
	}
	read, written := mapFile(t, file), mapFile(t, file)
	if err := unix.Mprotect(read, unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
	copy(written, "relocated")
	if err := unix.Mprotect(written, unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(read, content) || residentKiB(t, read) == 0 {
		t.Fatal("reading a mapping does not make it resident")
	}
	if err := unmapFile(file); err != nil {
		t.Fatal(err)
	}
	if n := residentKiB(t, read); n != 0 {
		t.Errorf("%d KiB resident, want none", n)
	}
	if !bytes.Equal(read, content) || !bytes.HasPrefix(written, []byte("relocated")) {
		t.Error("unmapping changed the content")
	}
	if err := UnmapProgram(); err != nil { // this test goes on
		t.Error(err)
	}
}

// mapFile maps a file as the kernel maps a program.
func mapFile(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	return b
}

// residentKiB is the Rss of the mapping at b.
func residentKiB(t *testing.T, b []byte) (n int) {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, m, _ := strings.Cut(string(smaps), fmt.Sprintf("%x-", &b[0])[2:])
	_, m, _ = strings.Cut(m, "\nRss:")
	if _, err := fmt.Sscanf(m, "%d kB", &n); err != nil {
		t.Fatal(err)
	}
	return n
}
