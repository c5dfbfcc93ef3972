//go:build e2e

// Package dist tests the output of make dist on all its processor architectures: `make dist-test`, and `make
// release-test` for some flavours.
package dist

import (
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/program"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// flavour is a binary of a release, and its emulator.
type flavour struct {
	name, arch string
	cgo        bool
	run        []string
}

// known are all flavours. The arm64 libraries are those of the cross compiler.
var known = []flavour{
	{"linux-amd64", "amd64", true, nil},
	{"linux-amd64-nogpu", "amd64", false, nil},
	{"linux-arm64", "arm64", true, []string{"qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"}},
	{"linux-arm64-nogpu", "arm64", false, []string{"qemu-aarch64-static"}},
}

// flavours returns the flavours in RDMA_FLAVOURS. All are compared with the first.
func flavours(t *testing.T) (out []flavour) {
	t.Helper()
	for _, name := range strings.Fields(os.Getenv("RDMA_FLAVOURS")) {
		i := slices.IndexFunc(known, func(f flavour) bool { return f.name == "linux-"+name })
		if i < 0 {
			t.Fatalf("RDMA_FLAVOURS: there is no flavour %s", name)
		}
		out = append(out, known[i])
	}
	if len(out) < 2 {
		t.Fatal("RDMA_FLAVOURS names less than two: run make dist-test")
	}
	return out
}

func (f flavour) file(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("RDMA_DIST")
	if dir == "" {
		t.Fatal("RDMA_DIST names no folder: run make dist-test")
	}
	return filepath.Join(dir, f.name, name)
}

func (f flavour) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if f.run != nil {
		program.Installed(t, f.run[0], packages)
	}
	all := append(append(f.run, program.Built(t, f.file(t, "rdma_exporter"), "make dist-test builds it")), args...)
	return exec.CommandContext(t.Context(), all[0], all[1:]...)
}

// each runs a test for all flavours.
func each(t *testing.T, test func(*testing.T, flavour)) {
	for _, f := range flavours(t) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			test(t, f)
		})
	}
}

// TestVersion: the version of every flavour.
func TestVersion(t *testing.T) {
	each(t, func(t *testing.T, f flavour) {
		out, err := f.command(t, "--version").CombinedOutput()
		must(t, err)
		info, err := buildinfo.ReadFile(f.file(t, "rdma_exporter"))
		must(t, err)
		nvml := "no: built without cgo"
		if f.cgo {
			nvml = "yes, where the host has libnvidia-ml.so.1"
		}
		for _, want := range []string{
			"rdma_exporter, version " + os.Getenv("RDMA_VERSION") + " (revision: " + os.Getenv("RDMA_REVISION") + ")\n",
			"\n  commit date:  20",
			"\n  go version:   " + info.GoVersion + "\n", "\n  platform:     linux/" + f.arch + "\n",
			"\n  NVML:         " + nvml + "\n",
		} {
			if !strings.Contains(string(out), want) {
				t.Errorf("%q is missing:\n%s", want, out)
			}
		}
	})
}

// TestThirdParty: each module that is built into the binary is listed with its version.
func TestThirdParty(t *testing.T) {
	each(t, func(t *testing.T, f flavour) {
		info, err := buildinfo.ReadFile(f.file(t, "rdma_exporter"))
		must(t, err)
		list, err := os.ReadFile(f.file(t, "THIRD_PARTY"))
		must(t, err)
		if len(info.Deps) < 10 {
			t.Errorf("%d modules in the binary", len(info.Deps))
		}
		for _, m := range info.Deps {
			if !strings.Contains(string(list), "\n"+m.Path+"  "+m.Version+"  ") {
				t.Errorf("%s %s is not listed", m.Path, m.Version)
			}
		}
	})
}

// sbom is the part of a CycloneDX document that names the binary and its components.
type sbom struct {
	BOMFormat    string `json:"bomFormat"`
	SerialNumber string `json:"serialNumber"`
	Metadata     struct {
		Timestamp  string
		Properties []struct{ Name, Value string }
	}
	Components []struct{ Name, Version string }
}

// TestSBOM: the document of a flavour has the checksum of its binary and each module that is built into it, the
// standard library too. It does not depend on the time of the build.
func TestSBOM(t *testing.T) {
	each(t, func(t *testing.T, f flavour) {
		text, err := os.ReadFile(filepath.Join(os.Getenv("RDMA_DIST"), "..",
			"rdma_exporter-"+os.Getenv("RDMA_VERSION")+"."+f.name+".cdx.json"))
		must(t, err)
		var b sbom
		must(t, json.Unmarshal(text, &b))
		if b.BOMFormat != "CycloneDX" || b.SerialNumber != "" || b.Metadata.Timestamp != "" {
			t.Errorf("format %q, serial number %q, timestamp %q", b.BOMFormat, b.SerialNumber, b.Metadata.Timestamp)
		}
		binary, err := os.ReadFile(f.file(t, "rdma_exporter"))
		must(t, err)
		sum := struct{ Name, Value string }{"cdx:gomod:binary:hash:SHA-256", fmt.Sprintf("%x", sha256.Sum256(binary))}
		if !slices.Contains(b.Metadata.Properties, sum) {
			t.Errorf("%v is missing: %v", sum, b.Metadata.Properties)
		}
		info, err := buildinfo.ReadFile(f.file(t, "rdma_exporter"))
		must(t, err)
		for _, m := range append(info.Deps, &debug.Module{Path: "std", Version: info.GoVersion}) {
			if !slices.Contains(b.Components, struct{ Name, Version string }{m.Path, m.Version}) {
				t.Errorf("%s %s is not listed", m.Path, m.Version)
			}
		}
		if len(b.Components) != len(info.Deps)+1 {
			t.Errorf("%d components of %d modules", len(b.Components), len(info.Deps)+1)
		}
	})
}

// newestGlibc is the maximum requirement of a binary with cgo: RHEL 9, Ubuntu 22.04 and Debian 12 have it.
const newestGlibc = "GLIBC_2.34"

// TestLinking: a binary without cgo has no dependencies; one with cgo requires the C library of the oldest supported
// distribution.
func TestLinking(t *testing.T) {
	each(t, func(t *testing.T, f flavour) {
		e, err := elf.Open(f.file(t, "rdma_exporter"))
		must(t, err)
		defer e.Close()
		libraries, err := e.ImportedLibraries()
		must(t, err)
		if !f.cgo {
			if len(libraries) > 0 {
				t.Errorf("needs %q", libraries)
			}
			return
		}
		for _, l := range libraries {
			if !strings.HasPrefix(l, "libc.so") && !strings.HasPrefix(l, "ld-linux") {
				t.Errorf("needs %s", l)
			}
		}
		symbols, err := e.ImportedSymbols()
		must(t, err)
		if len(symbols) == 0 {
			t.Error("needs no symbol of the C library")
		}
		for _, s := range symbols {
			if newer(s.Version, newestGlibc) {
				t.Errorf("%s is of %s, newer than %s", s.Name, s.Version, newestGlibc)
			}
		}
	})
}

// newer reports whether a version such as GLIBC_2.34 is newer than another. Some have a third number.
func newer(a, b string) bool {
	number := func(s string) (n int) {
		_, s, _ = strings.Cut(s, ".")
		for _, c := range s {
			if c < '0' || c > '9' {
				break
			}
			n = n*10 + int(c-'0')
		}
		return n
	}
	return strings.HasPrefix(a, "GLIBC_2.") && number(a) > number(b)
}
