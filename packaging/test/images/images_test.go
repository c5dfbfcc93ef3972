// Package images tests that container images are pinned by digest, and the tool that updates the digests.
package images

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"rdma_exporter/packaging/test/tool"
)

const root = "../../../"

// named are the lines of a file that name an image of a registry.
var named = regexp.MustCompile(`(?m)^(?:ARG [A-Z]+_IMAGE=| *(?:image|container): (?:\$\{[A-Z_]+:-)?)([^\s{}]+:[^\s{}]+)`)

// digest is the end of a pinned image.
var digest = regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)

// TestPinned: each image has a digest, the same one everywhere.
func TestPinned(t *testing.T) {
	workflows, err := filepath.Glob(root + ".github/workflows/*.yml")
	if err != nil {
		t.Fatal(err)
	}
	files := append(workflows, root+"Dockerfile", root+"packaging/compose/compose.yaml")
	pinned, images := map[string]string{}, 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			images++
			tag, _, _ := strings.Cut(m[1], "@")
			switch before := pinned[tag]; {
			case !digest.MatchString(m[1]):
				t.Errorf("%s: %s has no digest", file, m[1])
			case before != "" && before != m[1]:
				t.Errorf("%s: %s, elsewhere %s", file, m[1], before)
			}
			pinned[tag] = m[1]
		}
	}
	if images < 9 || len(pinned) < 5 {
		t.Errorf("%d images found, of %d tags: %v", images, len(pinned), pinned)
	}
}

// registry serves an empty registry and returns its address.
func registry(t *testing.T, crane string) string {
	t.Helper()
	serve := exec.CommandContext(t.Context(), crane, "registry", "serve", "--address=127.0.0.1:0")
	out, err := serve.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		serve.Process.Kill() //nolint:errcheck // it may have ended
		serve.Wait()         //nolint:errcheck // killed
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(line) // … serving on port 40141
	return "127.0.0.1:" + fields[len(fields)-1]
}

// TestUpdate: a digest of a tag that moved is replaced, another one stays, and the exit status says whether a file
// changed.
func TestUpdate(t *testing.T) {
	crane := tool.Crane(t)
	run := func(name string, args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	address, dir := registry(t, crane), t.TempDir()
	// push makes an image of a file and returns its digest.
	push := func(tag, content string) string {
		t.Helper()
		file := filepath.Join(dir, content)
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := run("tar", "-C", dir, "-cf", file+".tar", content); err != nil {
			t.Fatal(out, err)
		}
		if out, err := run(crane, "append", "-f", file+".tar", "-t", address+"/"+tag); err != nil {
			t.Fatal(out, err)
		}
		out, err := run(crane, "digest", address+"/"+tag)
		if err != nil {
			t.Fatal(out, err)
		}
		return out
	}
	debian, golang := push("debian:bookworm-slim", "first"), push("golang:1.26", "go")
	file := filepath.Join(dir, "Dockerfile")
	text := "ARG GO_IMAGE=" + address + "/golang:1.26@" + golang + "\nARG RUNTIME_IMAGE=" + address +
		"/debian:bookworm-slim@" + debian + "\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	update := func() (string, error) { return run(root+"packaging/dist/images.sh", crane, file) }
	if out, err := update(); err != nil || out != "" {
		t.Fatalf("nothing has moved: %q, %v", out, err)
	}
	moved := push("debian:bookworm-slim", "second")
	if out, err := update(); err == nil || out != address+"/debian:bookworm-slim is now "+moved {
		t.Errorf("%q, %v", out, err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(text, debian, moved); string(got) != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if out, err := update(); err != nil {
		t.Errorf("again: %q, %v", out, err)
	}
}
