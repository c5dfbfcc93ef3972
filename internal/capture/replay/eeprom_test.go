package replay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/capture/answer"
	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/netlink"
	"rdma_exporter/internal/transceiver"
	"rdma_exporter/test/archives"
)

// modules answers from pages, and with a bus error for all others.
type modules struct {
	host.Ethtool
	pages map[string]*answer.EEPROM
}

func (m modules) ModuleEEPROM(_ context.Context, netdev string, ref transceiver.Ref) ([]byte, error) {
	name := netlink.EEPROMName(netdev, ref)
	if e := m.pages[name]; e != nil {
		return e.Get(int(ref.Offset), int(ref.Length)), nil
	}
	return nil, &access.Error{Op: "query", Path: name, Err: syscall.EIO}
}

func TestModulesAreRecordedPageByPage(t *testing.T) {
	page := &answer.EEPROM{}
	for i := range 256 {
		page.Put(i, []byte{byte(i)})
	}
	m := modules{pages: map[string]*answer.EEPROM{"ethtool/eth0/eeprom/50-00-0": page}}
	rec := NewRecorder(&host.Host{Ethtool: m})
	ask := func(h *host.Host, ref transceiver.Ref) string {
		b, err := h.Ethtool.ModuleEEPROM(t.Context(), "eth0", ref)
		if err != nil {
			var errno syscall.Errno
			errors.As(err, &errno)
			return fmt.Sprint(int(errno))
		}
		return fmt.Sprintf("%x", b)
	}
	id, serial := transceiver.Ref{Address: 0x50, Length: 3}, transceiver.Ref{Address: 0x50, Offset: 166, Length: 2}
	monitors, second := transceiver.Ref{Address: 0x50, Offset: 14, Length: 4},
		transceiver.Ref{Address: 0x50, Page: 2, Offset: 128, Length: 8}
	for _, ref := range []transceiver.Ref{id, serial, monitors, second} {
		ask(rec.Host(), ref)
	}
	rec.EndRound(0)
	page.Put(14, []byte{0x40})
	ask(rec.Host(), monitors)
	rec.EndRound(15e9)
	a := rec.Archive(capture.Meta{Hostname: "gpu-1", Kernel: "6.12.0", Time: archives.Start})
	want := `-- ethtool/eth0/eeprom/50-00-0 --
0: 00 01 02
14: 0e 0f
16: 10 11
166: a6 a7
-- ethtool/eth0/eeprom/50-02-0 !EIO --
-- +15s/ethtool/eth0/eeprom/50-00-0 @lines --
14: 40 0f
`
	text := archives.Format(t, a)
	if i := strings.Index(text, "-- ethtool"); i < 0 || text[i:] != want {
		t.Errorf("%s", text)
	}
	p := play(t, archives.Parse(t, text))
	seek(t, p, 15e9)
	for ref, want := range map[transceiver.Ref]string{
		id: "000102", serial: "a6a7", monitors: "400f1011", second: fmt.Sprint(int(syscall.EIO)),
		{Address: 0x50, Offset: 200, Length: 4}: fmt.Sprint(int(syscall.EIO)),
		{Address: 0x51, Length: 4}:              fmt.Sprint(int(syscall.ENOENT)),
	} {
		if got := ask(p.Host(), ref); got != want {
			t.Errorf("%+v: %s, want %s", ref, got, want)
		}
	}
}
