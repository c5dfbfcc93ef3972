package umad

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/mad"
)

// fakeLink is a link between two nodes that answer.
type fakeLink struct {
	physical byte // of the local port
	silent   bool // the far end
	answers  chan *mad.Datagram
	asked    []uint16 // attributes, with the number of hops in the upper byte
}

func (w *fakeLink) Send(d *mad.Datagram, _ time.Duration) error {
	const (
		atHopCount, atAttribute               = 7, 16
		atModifier, atData                    = 20, 64
		nodeDescription, nodeInfo, portInfo   = 0x10, 0x11, 0x15
		methodGet, methodGetResp, directedWay = 0x01, 0x81, 0x8000
	)
	a := *d
	hops, attribute := a.MAD[atHopCount], binary.BigEndian.Uint16(a.MAD[atAttribute:])
	w.asked = append(w.asked, uint16(hops)<<8|attribute)
	if a.MAD[3] != methodGet {
		return errors.New("not a Get")
	}
	if hops > 0 && w.silent {
		return nil
	}
	a.MAD[3] = methodGetResp
	binary.BigEndian.PutUint16(a.MAD[4:], directedWay)
	data := a.MAD[atData:]
	switch attribute {
	case nodeInfo:
		data[2], data[3], data[36] = 2, 64, 31
		binary.BigEndian.PutUint64(data[12:], 0xb83fd20300a1c0de)
	case nodeDescription:
		copy(data, "MF0;ib-leaf-1:MQM9700/U1")
	case portInfo:
		if hops > 0 && binary.BigEndian.Uint32(a.MAD[atModifier:]) == 0 {
			data[17] = 5 // the switch's LID
			break
		}
		data[32], data[33] = 4, w.physical<<4
		data[29], data[35], data[63] = 0x13, 7, 0x8             // 1x, 2x, 4x; SDR to QDR; NDR
		data[30], data[32], data[62] = 0x13, 7<<4|4, 0x8<<4|0xf // supported: the same, and FDR to HDR
		data[31] = 0x10                                         // 2x, of NDR
		if hops > 0 {
			data[29], data[63] = 0x11, 0xc // 1x, 2x; HDR and NDR
		}
	}
	w.answers <- &a
	return nil
}

func (w *fakeLink) Receive(d *mad.Datagram) error {
	a, ok := <-w.answers
	if !ok {
		return errors.New("closed")
	}
	*d = *a
	return nil
}

func (w *fakeLink) Close() error {
	close(w.answers)
	return nil
}

func queryFake(t *testing.T, w *fakeLink) (host.IBLink, error) {
	t.Helper()
	w.answers = make(chan *mad.Datagram, 4)
	c := mad.NewClient(w, mad.Options{InFlight: 1, Timeout: 20 * time.Millisecond})
	l, err := queryLink(context.Background(), c, 1)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	return l, err
}

// lossy loses one datagram.
type lossy struct {
	mad.Transport
	loses int // which one, from 0
}

func (l *lossy) Send(d *mad.Datagram, timeout time.Duration) error {
	l.loses--
	if l.loses == -1 {
		return nil
	}
	return l.Transport.Send(d, timeout)
}

// TestLostDatagrams: whichever datagram is lost, the query succeeds with one more datagram.
func TestLostDatagrams(t *testing.T) {
	for loses := range 5 {
		t.Run(fmt.Sprintf("link, %d lost", loses), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				w := &fakeLink{physical: mad.PhysicalLinkUp, answers: make(chan *mad.Datagram, 4)}
				s := NewSubnet(func(string, int, ...uint8) (mad.Transport, error) { return &lossy{w, loses}, nil })
				if l, err := s.Ends(t.Context(), "mlx5_0", 1); err != nil || l.FarLID == nil || l.Requests != 6 {
					t.Errorf("%+v, %v", l, err)
				}
				if took := time.Since(start); took > subnetTimeout {
					t.Error(took)
				}
			})
		})
	}
	for loses := range 3 {
		t.Run(fmt.Sprintf("counters, %d lost", loses), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &fakeAgent{mask: extWidth, answers: make(chan *mad.Datagram, 4)}
				s := NewSubnet(func(string, int, ...uint8) (mad.Transport, error) { return &lossy{a, loses}, nil })
				if c, err := s.Counters(t.Context(), "mlx5_0", 1, &host.Agent{LID: 17, Port: 1}); err != nil || c.Stats == nil {
					t.Errorf("%+v, %v", c, err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		a := &fakeAgent{answers: make(chan *mad.Datagram, 4)}
		s := NewSubnet(func(string, int, ...uint8) (mad.Transport, error) { return &lossy{a, 0}, nil })
		if m, err := s.Manager(t.Context(), "mlx5_0", 1, 1); err != nil || m.State == nil {
			t.Errorf("manager: %+v, %v", m, err)
		}
	})
}

// TestQueryLink: at most five queries, and none beyond a link that is down.
func TestQueryLink(t *testing.T) {
	up := &fakeLink{physical: mad.PhysicalLinkUp}
	l, err := queryFake(t, up)
	if err != nil || l.FarDescription != "MF0;ib-leaf-1:MQM9700/U1" || l.FarGUID != "b83f:d203:00a1:c0de" ||
		*l.FarPort != 31 || *l.FarType != 2 || *l.FarLID != 5 {
		t.Fatalf("%+v, %v", l, err)
	}
	if c := l.Common(); c.Widths.Lanes() != 2 || c.Speeds.Name() != "NDR" {
		t.Errorf("%d lanes of %s", c.Widths.Lanes(), c.Speeds.Name())
	}
	for _, x := range []struct {
		what  string
		sets  host.IBSets
		lanes int
		speed string
	}{
		{"own supported", l.Own.Supported, 4, "NDR"},
		{"own enabled", l.Own.Enabled, 4, "NDR"},
		{"own active", l.Own.Active, 2, "NDR"},
		{"far supported", l.Far.Supported, 4, "NDR"},
		{"far enabled", l.Far.Enabled, 2, "NDR"},
		{"far active", l.Far.Active, 2, "NDR"},
	} {
		if got := x.sets.Link(); got.Widths.Lanes() != x.lanes || got.Speeds.Name() != x.speed {
			t.Errorf("%s: %d lanes of %s", x.what, got.Widths.Lanes(), got.Speeds.Name())
		}
	}
	if want := []uint16{0x0015, 0x0111, 0x0110, 0x0115, 0x0115}; !slices.Equal(up.asked, want) || l.Requests != len(want) {
		t.Errorf("%#04x, want %#04x; counts %d", up.asked, want, l.Requests)
	}
	down := &fakeLink{physical: 2}
	if l, err := queryFake(t, down); err != nil || l.FarPort != nil || l.Own.Enabled.Speeds == nil ||
		l.Own.Active.Speeds != nil || l.Common() != (mad.Link{}) || len(down.asked) != 1 || l.Requests != 1 {
		t.Errorf("down: %+v, %v, %#04x", l, err, down.asked)
	}
	if l, err := queryFake(t, &fakeLink{physical: mad.PhysicalLinkUp, silent: true}); err == nil ||
		l.FarPort != nil || l.Requests != 2 {
		t.Errorf("silent: %+v, %v", l, err)
	}
}
