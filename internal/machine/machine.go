// Package machine opens what a command reads: this host or a replay, with its collectors, site configuration and saved
// state.
package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"rdma_exporter/fixtures"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/replay"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/live"
	"rdma_exporter/internal/maintenance"
	"rdma_exporter/internal/rounds"
	"rdma_exporter/internal/words"
)

// Reach waits until a time. A replay is moved there.
func (m *Machine) Reach(ctx context.Context, t time.Time) error {
	if m.Player != nil {
		return m.Player.Seek(t)
	}
	select {
	case <-time.After(time.Until(t)):
		return nil
	case <-ctx.Done():
		return errors.New("interrupted")
	}
}

// FirstLine returns the first line of a file of the machine, as a foreign text; empty if it cannot be read.
func (m *Machine) FirstLine(path string) string {
	b, err := m.Files.Read(path, nil)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return words.Foreign(line)
}

// Machine is the host that a command reads: this one, or a replay.
type Machine struct {
	*host.Host
	Player *replay.Player // nil for a live host
	Meta   capture.Meta   // of the replay
	Site   []byte         // of the replay: the configuration file in force there; nil: none
	past   time.Time      // time of the earlier round of a replay that is being played; zero: now
	Close  func() error
}

// demo is the name of the built-in capture.
const demo = fixtures.Demo

// Open opens the machine and reads the site configuration. The recorded rounds of a replay end at last.
func (c *Config) Open(last time.Time) (*Machine, error) {
	m, err := c.openMachine(last)
	if err != nil {
		return nil, err
	}
	m.MeasureCPU(access.NewCPUWait(access.CPUOfProcess()))
	if c.Around != nil {
		c.Around(m.Host)
	}
	if err := c.Site.open(c, m); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func (c *Config) openMachine(last time.Time) (*Machine, error) {
	if c.Replay == "" {
		l, err := live.Open(c.Paths)
		if err != nil {
			return nil, err
		}
		return &Machine{Host: &l.Host, Close: l.Close}, nil
	}
	a, err := c.archive()
	if err != nil {
		return nil, fmt.Errorf("--replay=%s: %w", c.Replay, err)
	}
	if last.IsZero() {
		last = a.Meta.Time.Add(a.Rounds[len(a.Rounds)-1].At)
	}
	p, err := replay.Play(a, last.Add(-a.Rounds[len(a.Rounds)-1].At))
	if err != nil {
		return nil, fmt.Errorf("--replay=%s: %w", c.Replay, err)
	}
	return &Machine{Host: p.Host(), Player: p, Meta: a.Meta, Site: a.Config(), Close: p.Close}, nil
}

func (c *Config) archive() (*capture.Archive, error) {
	if c.Replay == demo {
		return capture.Parse(fixtures.Builtin(demo))
	}
	return capture.Load(c.Replay, fixtures.Builtin)
}

// Clock returns the wall clock, or the time of the earlier round of a replay that is being played.
func (m *Machine) Clock() time.Time {
	if !m.past.IsZero() {
		return m.past
	}
	return time.Now()
}

// Seek moves a replay to a point in time. It does nothing on a live host.
func (m *Machine) Seek(t time.Time) error {
	if m.Player == nil {
		return nil
	}
	return m.Player.Seek(t)
}

// Recording names the replay that is evaluated; empty on a live host.
func (m *Machine) Recording(c *Config) string {
	if m.Player == nil {
		return ""
	}
	return fmt.Sprintf("%s, recorded %s", c.Replay, m.Meta.Time.UTC().Format(time.DateOnly))
}

// Recorded returns the replay that is served; nil on a live host.
func (m *Machine) Recorded() *rounds.Recording {
	if m.Player == nil {
		return nil
	}
	return &rounds.Recording{Hostname: m.Hostname(), Date: m.Meta.Time.UTC().Format(time.DateOnly)}
}

// PlayRounds calls evaluate for each round of a replay, before serving starts.
func (m *Machine) PlayRounds(evaluate func() error) error {
	if m.Player == nil {
		return nil
	}
	times := m.Player.Times()
	for _, m.past = range times[:len(times)-1] {
		if err := evaluate(); err != nil {
			return err
		}
	}
	m.past = time.Time{}
	return evaluate()
}

// Describe names the machine that is read, for the first line of the log and the page.
func (m *Machine) Describe(c *Config) string {
	if m.Player == nil {
		return "this host"
	}
	name := c.Replay
	if name == demo {
		name = "the built-in demo node"
	}
	return fmt.Sprintf("a replay of %s (%s, recorded %s), not this host",
		name, m.Hostname(), m.Meta.Time.UTC().Format(time.DateOnly))
}

// Hostname is empty if it cannot be read.
func (m *Machine) Hostname() string {
	if m.Player == nil {
		return m.FirstLine("proc/sys/kernel/hostname")
	}
	return words.Foreign(m.Meta.Hostname)
}

// DefaultPort is the port of the exporter in the port allocations of Prometheus.
const DefaultPort = "10879"

// unnamed is a host whose name is not known or no name: "unknown" would be read as its verdict.
const unnamed = "unnamed"

// Instance returns the address that a central Prometheus would scrape, as far as it is known here. The port is taken
// from the first address of listen.
func (m *Machine) Instance(listen []string) string {
	port := DefaultPort
	if len(listen) > 0 {
		if _, p, err := net.SplitHostPort(listen[0]); err == nil && p != "0" {
			port = p
		}
	}
	at := net.JoinHostPort(cmp.Or(m.Hostname(), unnamed), port)
	if _, err := url.Parse("http://" + at); err != nil { // sethostname(2) takes any bytes
		at = net.JoinHostPort(unnamed, port)
	}
	return at
}

// MaintenanceClock reads both clocks of the host.
func (m *Machine) MaintenanceClock() maintenance.Clock {
	c := maintenance.Clock{Now: time.Now()}
	first, _, _ := strings.Cut(m.FirstLine("proc/uptime"), " ")
	if uptime, err := strconv.ParseFloat(first, 64); err == nil {
		c.Uptime, c.Boot = uptime, m.FirstLine("proc/sys/kernel/random/boot_id")
	}
	return c
}

// Times returns the rounds to evaluate: all rounds of a replay, now on a live host.
func (m *Machine) Times() []time.Time {
	if m.Player != nil {
		return m.Player.Times()
	}
	return []time.Time{m.Now()}
}
