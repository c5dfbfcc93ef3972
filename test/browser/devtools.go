//go:build e2e

package browser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"rdma_exporter/test/program"
)

// devtools is a connection to the DevTools protocol of a browser over its pipe: JSON messages that end in a zero byte.
type devtools struct {
	to    io.Writer
	event func(method string, params json.RawMessage)

	mu      sync.Mutex
	id      int                  // of the last command
	waiting map[int]chan message // by id of the command
	gone    error
}

// message is a command, its answer or an event.
type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// launch starts a headless Chromium, which ends with the test. event gets the events of its tabs, one at a time.
func launch(t *testing.T, event func(method string, params json.RawMessage)) *devtools {
	t.Helper()
	commands, to, err := os.Pipe()
	must(t, err)
	from, answers, err := os.Pipe()
	must(t, err)
	var log bytes.Buffer
	cmd := exec.Command(program.Installed(t, "chromium", "test/page/packages.sh"),
		"--headless", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "--no-sandbox", "--disable-gpu",
		"--disable-dev-shm-usage", "--hide-scrollbars", "--mute-audio", "--force-color-profile=srgb",
		// It opens nothing and asks nobody by itself.
		"--no-first-run", "--no-default-browser-check", "--disable-background-networking", "--disable-component-update",
		"--disable-default-apps", "--disable-extensions", "--disable-sync",
		// A tab in the background is as fast as one in front.
		"--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows",
		"--disable-renderer-backgrounding", "--disable-ipc-flooding-protection")
	cmd.ExtraFiles = []*os.File{commands, answers} // 3 and 4: remote-debugging-pipe
	cmd.Stdout, cmd.Stderr = &log, &log            // Wait waits for its processes, which write to the user data
	cmd.WaitDelay = Timeout
	must(t, cmd.Start())
	must(t, commands.Close())
	must(t, answers.Close())
	d := &devtools{to: to, event: event, waiting: map[int]chan message{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.read(from)
	}()
	t.Cleanup(func() {
		_, err := d.call("", "Browser.close", nil)
		if err != nil {
			t.Errorf("Browser.close: %v", err)
			_ = cmd.Process.Kill()
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("chromium: %v\n%s", err, &log)
		}
		<-done
		must(t, errors.Join(to.Close(), from.Close()))
	})
	return d
}

// read hands on answers and events until the browser ends.
func (d *devtools) read(from io.Reader) {
	lines := bufio.NewReader(from)
	for {
		text, err := lines.ReadBytes(0)
		var m message
		var params json.RawMessage
		m.Params = &params
		if err == nil {
			err = json.Unmarshal(text[:len(text)-1], &m)
		}
		if err != nil {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.gone = fmt.Errorf("connection to the browser: %w", err)
			for _, answer := range d.waiting {
				close(answer)
			}
			return
		}
		if m.ID == 0 {
			d.event(m.Method, params)
			continue
		}
		d.mu.Lock()
		if answer := d.waiting[m.ID]; answer != nil {
			delete(d.waiting, m.ID)
			answer <- m
		}
		d.mu.Unlock()
	}
}

// call sends a command to a tab, or to the browser without a session, and waits for its answer, at most for Timeout.
func (d *devtools) call(session, method string, params any) (json.RawMessage, error) {
	answer := make(chan message, 1)
	d.mu.Lock()
	if d.gone != nil {
		defer d.mu.Unlock()
		return nil, d.gone
	}
	d.id++
	text, err := json.Marshal(message{ID: d.id, Session: session, Method: method, Params: params})
	if err == nil {
		d.waiting[d.id] = answer
		_, err = d.to.Write(append(text, 0))
	}
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case m, ok := <-answer:
		switch {
		case !ok:
			return nil, errors.New("the browser has ended")
		case m.Error != nil:
			return nil, errors.New(m.Error.Message)
		}
		return m.Result, nil
	case <-time.After(Timeout):
		return nil, fmt.Errorf("no answer in %s", Timeout)
	}
}
