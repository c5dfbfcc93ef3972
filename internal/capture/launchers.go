package capture

import (
	"bytes"
	"context"
	"strings"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/snapshot"
)

// launchersPath has the services that start jobs, in lines "name: limit": bytes of locked memory, unlimited, or !REASON. It is empty if there
// are none.
const launchersPath = "launchers"

// launchersCut is a line of its own: the search was not completed.
const launchersCut = "..."

func encodeLaunchers(found []snapshot.Launcher, whole bool) []byte {
	var b bytes.Buffer
	for _, l := range found {
		text := encodeLimit(l.LockedMemory, l.Unlimited)
		if text == "" {
			text = "!" + l.Unread
		}
		b.WriteString(strings.Map(printable, l.Name+": "+text) + "\n")
	}
	if !whole {
		b.WriteString(launchersCut + "\n")
	}
	return b.Bytes()
}

func decodeLaunchers(data []byte) (found []snapshot.Launcher, whole bool, err error) {
	whole, found = true, []snapshot.Launcher{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if line == launchersCut {
			whole = false
			continue
		}
		name, text, ok := strings.Cut(line, ": ")
		l := snapshot.Launcher{Name: name}
		if reason, unread := strings.CutPrefix(text, "!"); unread {
			l.Unread = reason
		} else if l.LockedMemory, l.Unlimited, ok = decodeLimit(text); !ok {
			return nil, false, host.ErrGarbled(launchersPath, []byte(line))
		}
		if !ok {
			return nil, false, host.ErrGarbled(launchersPath, []byte(line))
		}
		found = append(found, l)
	}
	return found, whole, nil
}

// Launchers records the found services.
func (r *Recorder) Launchers(ctx context.Context, names []string) ([]snapshot.Launcher, bool, error) {
	found, whole, err := r.inner.Launchers.Launchers(ctx, names)
	r.answer(launchersPath, encodeLaunchers(found, whole), err)
	return found, whole, err
}

// Launchers returns the recorded services. Captures of earlier versions have none.
func (p *Player) Launchers(context.Context, []string) ([]snapshot.Launcher, bool, error) {
	b, err := p.Read(launchersPath, nil)
	if err != nil {
		return nil, false, err
	}
	return decodeLaunchers(b)
}
