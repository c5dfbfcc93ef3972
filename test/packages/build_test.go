//go:build e2e

package packages

import (
	"bytes"
	"cmp"
	"debug/elf"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	oldVersion, newVersion = "v1.2.3", "v1.2.3-4-gabcdef0" // as in git describe
	oldPackage, newPackage = "1.2.3-1", "1.2.3+4.gabcdef0-1"
)

var (
	update = flag.Bool("update", false, "write the goldens again")
	ready  = flag.String("tree", "", "copy this Debian tree instead of making one")
)

// built are the packages of one version: ARCHES, or this machine's architecture.
type built struct{ folder, version string }

// build builds them. A binary of another version in the directory is reused if it is identical.
func build(t *testing.T, version, folder string) built {
	t.Helper()
	nfpm := os.Getenv("NFPM")
	if nfpm == "" {
		t.Fatal("NFPM is not set: make release-test builds bin/nfpm and names it")
	}
	cmd := exec.Command(packaging+"/build.sh", folder)
	cmd.Env = append(os.Environ(), "VERSION="+version, "SOURCE_DATE_EPOCH=1700000000",
		"ARCHES="+cmp.Or(os.Getenv("ARCHES"), runtime.GOARCH))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return built{folder, map[string]string{oldVersion: oldPackage, newVersion: newPackage}[version]}
}

func (b built) deb(name string) string {
	return filepath.Join(b.folder, name+"_"+b.version+"_"+runtime.GOARCH+".deb")
}

func (b built) rpm(name string) string {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	return filepath.Join(b.folder, name+"-"+b.version+"."+arch+".rpm")
}

func (b built) all(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for _, pattern := range []string{"*.deb", "*.rpm"} {
		names, err := filepath.Glob(filepath.Join(b.folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			out[filepath.Base(n)] = []byte(read(t, n))
		}
	}
	return out
}

func testReproducible(t *testing.T, first, second map[string][]byte) {
	if len(first) < 4 || len(first) != len(second) {
		t.Fatalf("%d packages, then %d", len(first), len(second))
	}
	for name, b := range first {
		if !bytes.Equal(b, second[name]) {
			t.Errorf("%s: a second build differs", name)
		}
	}
}

// glibc is the minimum version that the packages require.
const glibc = "GLIBC_2.34"

// testLibraries compares the library requirements of the binaries with those of the packages.
func testLibraries(t *testing.T, b built) {
	for folder, want := range map[string][]string{
		"linux-" + runtime.GOARCH: {"libc.so.6"}, "linux-" + runtime.GOARCH + "-nogpu": nil,
	} {
		f, err := elf.Open(filepath.Join(b.folder, folder, "rdma_exporter"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if got, err := f.ImportedLibraries(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s needs libraries %s (%v), want %s", folder, got, err, want)
		}
		if want == nil {
			continue
		}
		symbols, err := f.ImportedSymbols()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range symbols {
			if number(s.Version) > number(glibc) {
				t.Errorf("%s needs %s of %s, the packages ask for %s", folder, s.Name, s.Version, glibc)
			}
		}
	}
}

// number makes versions 2.N comparable; 0 without one.
func number(version string) int {
	_, minor, _ := strings.Cut(version, ".")
	minor, _, _ = strings.Cut(minor, ".")
	n, _ := strconv.Atoi(minor)
	return n
}

// testRPM compares the system requirements and scripts of the packages.
func testRPM(t *testing.T, b built) {
	const about = `Name: %{NAME}\nVersion: %{VERSION}-%{RELEASE}\nLicense: %{LICENSE}\nSummary: %{SUMMARY}\n` +
		`[Requires: %{REQUIRENEVRS}\n][Provides: %{PROVIDENEVRS}\n][Conflicts: %{CONFLICTNEVRS}\n][Obsoletes: %{OBSOLETENEVRS}\n]` +
		`[%{FILEMODES:perms} %{FILEUSERNAME} %{FILEGROUPNAME} %{FILENAMES} %{FILEFLAGS:fflags}\n]`
	var got strings.Builder
	for _, name := range []string{"rdma-exporter", "rdma-exporter-nogpu"} {
		file := b.rpm(name)
		got.WriteString(command(t, "rpm", "-qp", "--nosignature", "--qf", about, file) + "\n")
		got.WriteString(command(t, "rpm", "-qp", "--nosignature", "--scripts", file) + "\n")
	}
	const golden = "testdata/rpm.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := read(t, golden); got.String() != want {
		t.Errorf("the packages differ from %s: if that is meant, NFPM=… go test -tags e2e ./test/packages -update\n%s",
			golden, got.String())
	}
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}
