package umad

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/mad"
)

// fakeAgent answers for a port at LID 17, or for a subnet manager at LID 1.
type fakeAgent struct {
	mask    uint16 // ClassPortInfo.CapabilityMask
	mask2   uint32
	status  map[uint16]uint16 // of answers, by attribute
	silent  uint16            // attribute without an answer
	refuses error             // of opening
	broken  error             // of sending
	caps2   [256]uint16       // PortInfo.CapabilityMask2 by port; 0: no CapabilityMask
	fec     byte              // PortInfoExtended.FECModeActive
	noFEC   bool              // PortInfoExtended does not have it
	up      bool              // PortInfo: link up, MTU 4096, VL0 to VL3

	answers chan *mad.Datagram
	asked   []string
	classes []uint8
	closed  bool
}

const (
	classPortInfo, portCounters, portCountersExtended, smInfo = 0x01, 0x12, 0x1d, 0x20
	attrPortInfo, portInfoExtended, extendedSpeeds, slToVL    = 0x15, 0x33, 0x1f, 0x17

	extWidth, extWidthNoIETF, waits, wideErrors, rsFEC = 1 << 9, 1 << 10, 1 << 12, 1 << 1, 1 << 14
)

func (a *fakeAgent) Send(d *mad.Datagram, _ time.Duration) error {
	if a.broken != nil {
		return a.broken
	}
	m := *d
	attribute := binary.BigEndian.Uint16(m.MAD[16:])
	switch m.MAD[1] {
	case mad.ClassSubnetDirected:
		a.asked = append(a.asked, fmt.Sprintf("%#x of %d after %d hops", attribute, m.MAD[23], m.MAD[7]))
	default:
		a.asked = append(a.asked, fmt.Sprintf("%#x of %d at %d by QP%d", attribute, m.MAD[65], d.LID, d.QP))
	}
	if m.MAD[3] != 1 {
		return errors.New("not a Get")
	}
	if attribute == a.silent {
		return nil
	}
	m.MAD[3] = 0x81
	binary.BigEndian.PutUint16(m.MAD[4:], a.status[attribute])
	data := m.MAD[64:]
	switch attribute {
	case classPortInfo:
		binary.BigEndian.PutUint16(data[2:], a.mask)
		binary.BigEndian.PutUint32(data[4:], a.mask2<<5)
	case portCounters: // each field counts its first bit
		binary.BigEndian.PutUint16(data[4:], 32)
		data[6], data[7] = 48, 56
		binary.BigEndian.PutUint16(data[8:], 64)
		binary.BigEndian.PutUint32(data[40:], 320)
	case portCountersExtended: // each field counts its first byte, and 2^20 times that
		for at := 8; at < 176; at += 8 {
			binary.BigEndian.PutUint64(data[at:], uint64(at)<<20)
		}
	case attrPortInfo:
		if mask := a.caps2[m.MAD[23]]; mask != 0 {
			binary.BigEndian.PutUint32(data[20:], 1<<15)
			binary.BigEndian.PutUint16(data[60:], mask)
		}
		if a.up {
			data[32], data[33], data[36], data[43] = 4, 5<<4, 5<<4, 3<<4
		}
	case slToVL:
		copy(data, []byte{0x01, 0x23, 0x01, 0x23, 0xf0, 0, 0, 0x0f})
	case portInfoExtended:
		data[5] = a.fec
		if !a.noFEC {
			data[3] = 1
		}
	case extendedSpeeds: // each field counts its first byte
		for at := 16; at < 160; at += 4 {
			binary.BigEndian.PutUint32(data[at:], uint32(at))
		}
	case smInfo:
		binary.BigEndian.PutUint64(data, 0xb83fd20300a1c0de)
		binary.BigEndian.PutUint32(data[16:], 4711)
		data[20] = 14<<4 | 3
	}
	a.answers <- &m
	return nil
}

func (a *fakeAgent) Receive(d *mad.Datagram) error {
	m, ok := <-a.answers
	if !ok {
		return errors.New("closed")
	}
	*d = *m
	return nil
}

func (a *fakeAgent) Close() error {
	a.closed = true
	close(a.answers)
	return nil
}

func (a *fakeAgent) subnet() host.Subnet {
	return NewSubnet(func(_ string, _ int, classes ...uint8) (mad.Transport, error) {
		if a.refuses != nil {
			return nil, a.refuses
		}
		a.answers, a.classes, a.closed = make(chan *mad.Datagram, 4), classes, false
		return a, nil
	})
}

// TestCounters: exactly the counters of the agent are returned, with the minimum number of datagrams.
func TestCounters(t *testing.T) {
	all := slices.Clone(counterFiles[:])
	without := func(names ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(n string) bool { return slices.Contains(names, n) })
	}
	casts := []string{"unicast_xmit_packets", "unicast_rcv_packets", "multicast_xmit_packets", "multicast_rcv_packets"}
	traffic := append([]string{"port_xmit_data", "port_rcv_data", "port_xmit_packets", "port_rcv_packets"}, casts...)
	const long, short = "0x1d of 1 at 17 by QP1", "0x12 of 1 at 17 by QP1"
	for _, tt := range []struct {
		name  string
		mask  uint16
		mask2 uint32
		quirk bool
		names []string
		asked []string
		some  map[string]uint64
		wide  bool
	}{
		{name: "all in 64 bits", mask: extWidth, mask2: wideErrors, names: all, asked: []string{long}, wide: true, some: map[string]uint64{"symbol_error": 72 << 20, "port_xmit_wait": 168 << 20, "port_xmit_data": 8 << 20, "multicast_rcv_packets": 64 << 20}},
		{name: "the driver of mlx5", mask: extWidth, quirk: true, names: all, asked: []string{long, short}, some: map[string]uint64{"symbol_error": 32, "link_downed": 56, "port_xmit_wait": 320, "port_rcv_packets": 32 << 20}},
		{name: "no waiting", mask: extWidth, names: without("port_xmit_wait"), asked: []string{long, short}},
		{name: "no unicast and multicast", mask: extWidthNoIETF | waits, names: without(casts...), asked: []string{long, short}},
		{name: "32 bits", mask: waits, names: without(traffic...), asked: []string{short}},
		{name: "nothing said", names: without(append(traffic, "port_xmit_wait")...), asked: []string{short}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &fakeAgent{mask: tt.mask, mask2: tt.mask2}
			s, at := a.subnet(), &host.Agent{LID: 17, Port: 1, TransmitWait: tt.quirk}
			for first := range 2 {
				a.asked = nil
				c, err := s.Counters(t.Context(), "mlx5_0", 1, at)
				if err != nil {
					t.Fatal(err)
				}
				var names []string
				for _, st := range c.Stats {
					names = append(names, st.Name)
					if want, ok := tt.some[st.Name]; ok && st.Value != want {
						t.Errorf("%s is %d, want %d", st.Name, st.Value, want)
					}
				}
				if !slices.Equal(names, tt.names) || c.Wide != tt.wide {
					t.Errorf("%v, %v; want %v, %v", names, c.Wide, tt.names, tt.wide)
				}
				questions := tt.asked
				if first == 0 {
					questions = append([]string{"0x1 of 0 at 17 by QP1"}, questions...)
				}
				if n := at.Requests(); n != len(tt.asked) {
					t.Errorf("%d requests, want %d", n, len(tt.asked))
				}
				if !slices.Equal(a.asked, questions) || !slices.Equal(a.classes, []uint8{mad.ClassPerformance}) || !a.closed {
					t.Errorf("%v by %v, closed %v; want %v", a.asked, a.classes, a.closed, questions)
				}
			}
		})
	}
}

// TestCountersFail: each failure is returned, without partial results.
func TestCountersFail(t *testing.T) {
	for _, tt := range []struct {
		name string
		a    fakeAgent
		want string
	}{
		{"no rights", fakeAgent{refuses: errors.New("refused")}, "refused"},
		{"no agent", fakeAgent{silent: classPortInfo}, "query ClassPortInfo of lid 17: no answer"},
		{"no answer", fakeAgent{mask: extWidth, silent: portCountersExtended}, "query PortCountersExtended of lid 17: no answer"},
		{"no second answer", fakeAgent{mask: extWidth, silent: portCounters}, "query PortCounters of lid 17: no answer"},
		{"refused", fakeAgent{status: map[uint16]uint16{classPortInfo: 3 << 2}}, "attribute not supported"},
		{"redirected", fakeAgent{mask: extWidth, status: map[uint16]uint16{portCountersExtended: 2}}, "agent redirects"},
		{"device gone", fakeAgent{broken: errors.New("no such device")}, "no such device"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				c, err := tt.a.subnet().Counters(context.Background(), "mlx5_0", 1, &host.Agent{LID: 17, Port: 1})
				if err == nil || !strings.Contains(err.Error(), tt.want) || c.Stats != nil {
					t.Errorf("%+v, %v; want %s", c, err, tt.want)
				}
				if took := time.Since(start); took > (1+subnetRetries)*agentTimeout {
					t.Errorf("%s", took)
				}
				if tt.a.refuses == nil && !tt.a.closed {
					t.Error("is open")
				}
			})
		})
	}
}

func TestManager(t *testing.T) {
	a := &fakeAgent{}
	m, err := a.subnet().Manager(t.Context(), "mlx5_0", 1, 1)
	if err != nil || m.GUID != "b83f:d203:00a1:c0de" || *m.State != 3 || *m.Priority != 14 || *m.Activity != 4711 {
		t.Errorf("%+v, %v", m, err)
	}
	if want := []string{"0x20 of 0 at 1 by QP0"}; !slices.Equal(a.asked, want) ||
		!slices.Equal(a.classes, []uint8{mad.ClassSubnetLID}) {
		t.Errorf("%v by %v", a.asked, a.classes)
	}
	a = &fakeAgent{silent: smInfo}
	if _, err := a.subnet().Manager(t.Context(), "mlx5_0", 1, 1); !errors.Is(err, mad.ErrTimeout) {
		t.Error(err)
	}
}
