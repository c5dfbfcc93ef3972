//go:build e2e

package alerting

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/test/port"
)

const repository = "../.."

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestMain requires a Prometheus and an Alertmanager.
func TestMain(m *testing.M) {
	cmd := exec.Command("./packages.sh")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "packages.sh:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// process is a running server.
type process struct {
	address string
	cmd     *exec.Cmd
	done    chan struct{}
}

// start starts a server on an address (port.Any or a reserved one), and waits until it is ready. It ends with the test,
// and its log is shown if the test fails.
func start(t *testing.T, address, name string, args ...string) *process {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), "log")
	must(t, err)
	p := &process{cmd: exec.Command(name, append(args, "--web.listen-address="+address)...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait() // ended by the test
		close(p.done)
	}()
	t.Cleanup(func() {
		p.end(syscall.SIGTERM)
		if t.Failed() {
			b, err := os.ReadFile(log.Name())
			t.Logf("%s %s: %v\n%s", name, strings.Join(args, " "), err, b)
		}
	})
	p.address = port.Of(t, p.cmd.Process.Pid)
	eventually(t, 30*time.Second, func() error {
		select {
		case <-p.done:
			return errors.New("it has ended")
		default:
		}
		_, err := get(t.Context(), "http://"+p.address+"/-/ready")
		return err
	})
	return p
}

func (p *process) end(how syscall.Signal) {
	_ = p.cmd.Process.Signal(how) // it may have ended
	<-p.done
}

func get(ctx context.Context, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.200s", url, resp.Status, b)
	}
	return b, err
}

// eventually retries until there is no error or the limit has passed.
func eventually(t *testing.T, limit time.Duration, ask func() error) {
	t.Helper()
	end := time.Now().Add(limit)
	for {
		err := ask()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("after %s: %v", limit, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}
