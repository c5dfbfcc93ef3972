package replay

import (
	"context"
	"reflect"
	"testing"
	"time"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot/hostdata"
)

type launchers struct {
	found []hostdata.Launcher
	whole bool
}

func (l launchers) Launchers(context.Context, []string) ([]hostdata.Launcher, bool, error) {
	return l.found, l.whole, nil
}

type modeFiles struct{ host.Files }

func (modeFiles) Mode(string) (uint32, *uint32, error) {
	return 0o660, new(uint32(110)), nil
}
func (modeFiles) Link(string) (string, error)     { return "", access.Denied("") }
func (modeFiles) List(string) ([]string, error)   { return nil, access.Denied("") }
func (modeFiles) Readable(string) error           { return nil }
func (modeFiles) Identity(string) (uint64, error) { return 1, nil }

// replayed records one reading and returns a replay of it.
func replayed(t *testing.T, src *host.Host, read func(*host.Host)) *Player {
	t.Helper()
	rec := NewRecorder(src)
	read(rec.Host())
	rec.EndRound(0)
	text, err := capture.Format(rec.Archive(capture.Meta{Time: time.Unix(0, 0)}))
	if err != nil {
		t.Fatal(err)
	}
	a, err := capture.Parse(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	p, err := Play(a, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func TestLaunchersRoundTrip(t *testing.T) {
	memlock := uint64(8388608)
	for _, want := range []launchers{
		{[]hostdata.Launcher{}, true},
		{[]hostdata.Launcher{{Name: "slurmd", Unlimited: true}, {Name: "sshd", LockedMemory: &memlock}, {Name: "dockerd", Unread: "permission"}, {Name: "crio"}}, true},
		{[]hostdata.Launcher{{Name: "slurmd", Unlimited: true}}, false},
	} {
		p := replayed(t, &host.Host{Launchers: want},
			func(h *host.Host) { _, _, _ = h.Launchers.Launchers(t.Context(), nil) })
		found, whole, err := p.Launchers(t.Context(), nil)
		if err != nil || whole != want.whole || !reflect.DeepEqual(found, want.found) {
			t.Errorf("%+v %v %v, want %+v", found, whole, err, want)
		}
	}
}

func TestModeRoundTrip(t *testing.T) {
	p := replayed(t, &host.Host{Files: modeFiles{}}, func(h *host.Host) {
		if _, _, err := h.Files.Mode("dev/infiniband/uverbs0"); err != nil {
			t.Fatal(err)
		}
	})
	mode, group, err := p.Mode("dev/infiniband/uverbs0")
	if err != nil || mode != 0o660 || group == nil || *group != 110 {
		t.Errorf("%04o %v %v", mode, group, err)
	}
	if _, _, err := p.Mode("dev/infiniband/uverbs1"); !access.IsAbsent(err) {
		t.Errorf("a path that was not read: %v", err)
	}
}
