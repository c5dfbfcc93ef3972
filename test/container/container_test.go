//go:build e2e

// Package container builds the image from the Dockerfile, with base images built from Debian packages and with this
// machine's Go, runs it as its own user, and runs its health check. It requires root (`make release-test`), buildah and
// debootstrap (packages.sh).
package container

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/port"
	"rdma_exporter/test/program"
)

const (
	goImage      = "localhost/go-on-debian:test"
	runtimeImage = "localhost/debian:test"
	image        = "localhost/rdma_exporter:test"
	version      = "1.2.3-test"
	revision     = "0123456789abcdef"
	packages     = "test/container/packages.sh"
)

// store is a buildah with separate storage. chroot isolation needs no kernel features; vfs works where overlay is
// unavailable.
type store struct{ global []string }

func newStore(t *testing.T) store {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("BUILDAH_ISOLATION", "chroot")
	buildah := program.Installed(t, "buildah", packages)
	for _, driver := range []string{"overlay", "vfs"} {
		s := store{
			[]string{buildah, "--root", dir + "/" + driver, "--runroot", dir + "/run-" + driver, "--storage-driver", driver},
		}
		if s.command(t.Context(), "info").Run() == nil {
			t.Cleanup(func() { _ = s.command(context.Background(), "rm", "--all").Run() }) // mounted containers
			return s
		}
	}
	t.Fatal("buildah has no storage: neither overlay nor vfs")
	return store{}
}

func (s store) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, s.global[0], slices.Concat(s.global[1:], args)...)
}

// do runs buildah and returns its output.
func (s store) do(t *testing.T, args ...string) string {
	t.Helper()
	return output(t, s.command(t.Context(), args...))
}

func output(t *testing.T, c *exec.Cmd) string {
	t.Helper()
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", c, err, out, errs.Bytes())
	}
	return strings.TrimSpace(string(out))
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	return output(t, exec.CommandContext(t.Context(), "go", "env", name))
}

// config is the configuration of an image.
type config struct {
	User         string
	Entrypoint   []string
	Labels       map[string]string
	ExposedPorts map[string]any
	Healthcheck  struct{ Test []string }
}

// TestImage builds the image once and runs all checks on it.
func TestImage(t *testing.T) {
	s := newStore(t)
	program.Installed(t, "debootstrap", packages) // bases.sh runs it
	bases := exec.CommandContext(t.Context(), "./bases.sh", t.TempDir(), goImage, runtimeImage)
	bases.Env = append(os.Environ(), "BUILDAH="+strings.Join(s.global, " "))
	output(t, bases)
	s.do(t, "build", "--format", "docker", "--pull=never", "-t", image,
		"--build-arg", "GO_IMAGE="+goImage, "--build-arg", "RUNTIME_IMAGE="+runtimeImage,
		"--build-arg", "VERSION="+version, "--build-arg", "REVISION="+revision,
		// This machine's Go, downloads and build cache. They are not part of the image.
		"-v", goEnv(t, "GOROOT")+":/usr/local/go:ro",
		"-v", goEnv(t, "GOMODCACHE")+":/go/pkg/mod", "-v", goEnv(t, "GOCACHE")+":/root/.cache/go-build",
		"../..")

	var inspected struct{ Docker struct{ Config config } }
	if err := json.Unmarshal([]byte(s.do(t, "inspect", "--type", "image", image)), &inspected); err != nil {
		t.Fatal(err)
	}
	c := inspected.Docker.Config
	t.Run("config", func(t *testing.T) { c.verify(t) })

	from := s.do(t, "from", "--pull=never", image)
	root := s.do(t, "mount", from)
	t.Run("binary", func(t *testing.T) { verifyBinary(t, filepath.Join(root, c.Entrypoint[0])) })
	t.Run("licences", func(t *testing.T) {
		for _, name := range []string{"LICENSE", "THIRD_PARTY"} {
			if st, err := os.Stat(filepath.Join(root, "usr/share/doc/rdma_exporter", name)); err != nil || st.Size() < 1000 {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("version", func(t *testing.T) {
		if got := s.do(t, slices.Concat([]string{"run", from, "--"}, c.Entrypoint,
			[]string{"--version"})...); !strings.Contains(got, version) || !strings.Contains(got, revision) {
			t.Errorf("%s", got)
		}
	})
	t.Run("health", func(t *testing.T) { s.health(t, from, c) })
}

func (c config) verify(t *testing.T) {
	if c.User != "65532:65532" {
		t.Errorf("user %s", c.User)
	}
	if len(c.Entrypoint) != 1 || len(c.Healthcheck.Test) < 2 || c.Healthcheck.Test[0] != "CMD" {
		t.Fatalf("entry point %q, health check %q", c.Entrypoint, c.Healthcheck.Test)
	}
	if _, ok := c.ExposedPorts["10879/tcp"]; !ok || len(c.ExposedPorts) != 1 {
		t.Errorf("ports %v", c.ExposedPorts)
	}
	for name, want := range map[string]string{
		"title": "rdma_exporter", "licenses": "Apache-2.0", "version": version, "revision": revision,
		"base.name": runtimeImage,
	} {
		if got := c.Labels["org.opencontainers.image."+name]; got != want {
			t.Errorf("label %s: %q", name, got)
		}
	}
}

// verifyBinary: NVML is loaded by glibc, so the program must be linked against it, and NVML's functions must not be
// resolved at the start.
func verifyBinary(t *testing.T, path string) {
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if libs, err := f.ImportedLibraries(); err != nil || !slices.Contains(libs, "libc.so.6") {
		t.Errorf("%v, %v", libs, err)
	}
	if flags, err := f.DynValue(elf.DT_FLAGS); err != nil || len(flags) > 0 && elf.DynFlag(flags[0])&elf.DF_BIND_NOW != 0 {
		t.Errorf("flags %v, %v", flags, err)
	}
}

// health serves the demo node at a specified address and runs the image's health check before, during and afterwards.
func (s store) health(t *testing.T, from string, c config) {
	// The health check takes it from the command line; at the default address another exporter could answer.
	address := port.Held(t)
	args := []string{"--replay=demo", "--no-alerting", "--web.listen-address=" + address}
	server := s.command(context.Background(), slices.Concat([]string{"run", from, "--"}, c.Entrypoint, args)...)
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	pid := waitFor(t, address)
	t.Cleanup(func() {
		_ = syscall.Kill(pid, syscall.SIGTERM)
		if err := server.Wait(); err != nil {
			t.Errorf("%v\n%s", err, log.Bytes())
		}
	})
	if got := userOf(t, pid); got != c.User {
		t.Errorf("it runs as %s", got)
	}
	deadline := time.Now().Add(time.Minute)
	for {
		out, err := inside(t, pid, c.Healthcheck.Test[1:]...)
		if err == nil {
			if !strings.Contains(out, address+"/-/healthy: healthy") {
				t.Errorf("%s", out)
			}
			break
		}
		if !strings.Contains(out, address+"/-/healthy") || time.Now().After(deadline) {
			t.Fatalf("%v: %s\n%s", err, out, log.Bytes())
		}
		time.Sleep(200 * time.Millisecond)
	}
	if out, err := inside(t, pid, "/usr/bin/touch", "/var/lib/rdma_exporter/x"); err != nil {
		t.Errorf("the state directory: %s", out)
	}
	if out, err := inside(t, pid, c.Healthcheck.Test[1], "healthy", "--url=http://127.0.0.1:1"); err == nil {
		t.Errorf("what is not there is healthy: %s", out)
	}
}
