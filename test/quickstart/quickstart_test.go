//go:build e2e

package quickstart

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/program"
)

const repository = "../.."

// block is a fenced block in a section of the document.
type block struct{ language, text string }

// blocks returns the code blocks of a section, in order.
func blocks(t *testing.T, heading string) (out []block) {
	t.Helper()
	page, err := os.ReadFile(repository + "/docs/quickstart.md")
	must(t, err)
	_, section, ok := strings.Cut(string(page), "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("docs/quickstart.md has no section %s", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for _, m := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(section, -1) {
		out = append(out, block{m[1], m[2]})
	}
	return out
}

// reader follows the document, with a home and a shell in the checkout.
type reader struct {
	t    *testing.T
	home string
	env  []string
}

func newReader(t *testing.T) *reader {
	t.Helper()
	r := &reader{t: t, home: t.TempDir()}
	bin := t.TempDir() // Debian uses a different name
	must(t, os.Symlink(program.Installed(t, "prometheus-alertmanager", "test/alerting/packages.sh"),
		filepath.Join(bin, "alertmanager")))
	r.env = append(os.Environ(), "HOME="+r.home, "PATH="+bin+":"+os.Getenv("PATH"))
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} { // in the home of the user who runs the test
		out, err := exec.Command("go", "env", name).Output()
		must(t, err)
		r.env = append(r.env, name+"="+strings.TrimSpace(string(out)))
	}
	return r
}

// start passes lines to a shell. Remaining processes end with the test, and their output is shown if it fails.
func (r *reader) start(lines string) *exec.Cmd {
	r.t.Helper()
	log, err := os.CreateTemp(r.t.TempDir(), "log")
	must(r.t, err)
	cmd := exec.Command("bash", "-ec", lines)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = repository, r.env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(r.t, cmd.Start())
	r.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // there may be none left
		if r.t.Failed() {
			b, err := os.ReadFile(log.Name())
			r.t.Logf("%s: %v\n%s", lines, err, b)
		}
	})
	return cmd
}

func (r *reader) run(lines string) {
	r.t.Helper()
	if err := r.start(lines).Wait(); err != nil {
		r.t.Fatalf("%v: %s", err, lines)
	}
}

// write writes a file to the path in its first line.
func (r *reader) write(text string) {
	r.t.Helper()
	first, _, _ := strings.Cut(text, "\n")
	name, ok := strings.CutPrefix(first, "# ~/")
	if !ok {
		r.t.Fatalf("does not say which file it is: %s", first)
	}
	must(r.t, os.WriteFile(filepath.Join(r.home, name), []byte(text), 0o644))
}

// eventually retries until there is no error or the limit has passed.
func (r *reader) eventually(limit time.Duration, ask func() error) {
	r.t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(time.Second) {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("after %s: %v", limit, err)
		}
	}
}

func get(t *testing.T, url string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, resp.Status)
	}
	return string(b), err
}

// left returns the files that git reports as untracked or changed in the checkout, without build output.
func left(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("git", "-C", repository, "status", "--porcelain", "--ignored").Output()
	must(t, err)
	return strings.ReplaceAll(string(out), "!! bin/\n", "")
}

// TestQuickstart: the recorded node, then Prometheus: its alert is in Alertmanager, the link leads to the runbook, and
// the checkout is unchanged.
func TestQuickstart(t *testing.T) {
	loopback(t)
	before := left(t)
	r := newReader(t)
	r.start(blocks(t, "A recorded node")[0].text)
	r.eventually(8*time.Minute, func() error { // it is compiled first
		_, err := get(t, "http://localhost:10879/-/ready")
		return err
	})
	all := blocks(t, "Prometheus")
	for _, b := range all[:len(all)-1] {
		if b.language == "yaml" {
			r.write(b.text)
		} else {
			r.run(b.text)
		}
	}
	const alert = "RDMAPortDown"
	query := all[len(all)-1].text
	r.eventually(5*time.Minute, func() error {
		cmd := exec.Command("bash", "-ec", query)
		cmd.Dir, cmd.Env = repository, r.env
		out, err := cmd.CombinedOutput()
		if err == nil && !strings.Contains(string(out), alert) {
			err = fmt.Errorf("no %s", alert)
		}
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})

	text, err := get(t, "http://localhost:9093/api/v2/alerts")
	must(t, err)
	var alerts []struct {
		Labels, Annotations map[string]string
		Status              struct{ State string }
	}
	must(t, json.Unmarshal([]byte(text), &alerts))
	for _, a := range alerts {
		name := a.Labels["alertname"]
		if page, err := get(t, a.Annotations["runbook_url"]); err != nil || !strings.Contains(page, "<h1>"+name+"</h1>") {
			t.Errorf("%s: the runbook is not at %q: %v", name, a.Annotations["runbook_url"], err)
		}
		if notifies := a.Status.State == "active"; notifies != (name == "RDMAReplay") && a.Labels["instance"] != "" {
			t.Errorf("%s is %s", name, a.Status.State)
		}
	}
	if after := left(t); after != before {
		t.Errorf("in the checkout before:\n%safter:\n%s", before, after)
	}
}
