package capture

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/mad"
)

// subnetPath is the entry of the answers of both ends of a link.
func subnetPath(device string, port int) string {
	return fmt.Sprintf("subnet/%s/%d/link", device, port)
}

// isSubnet reports whether a path is an entry of the answers of both ends of a link.
func isSubnet(name string) bool {
	return strings.HasPrefix(name, "subnet/") && strings.HasSuffix(name, "/link")
}

func linkFields(l *host.IBLink) []field {
	return slices.Concat(endFields("own_", &l.Own), []field{{"sm_lid", &l.SMLID, false}}, endFields("far_", &l.Far), []field{
		{"far_type", &l.FarType, false},
		{"far_port", &l.FarPort, false},
		{"far_lid", &l.FarLID, false},
	})
}

// endFields are those of one end. What is enabled has no prefix.
func endFields(of string, e *host.IBEnd) []field {
	return []field{
		{of + "widths", &e.Enabled.Widths, true},
		{of + "speeds", &e.Enabled.Speeds, true},
		{of + "supported_widths", &e.Supported.Widths, true},
		{of + "supported_speeds", &e.Supported.Speeds, true},
		{of + "active_widths", &e.Active.Widths, true},
		{of + "active_speeds", &e.Active.Speeds, true},
	}
}

// encodeLink escapes the node description like a path, since an operator may have set it.
func encodeLink(l host.IBLink) []byte {
	var b bytes.Buffer
	encodeFields(&b, linkFields(&l))
	if l.FarGUID != "" {
		fmt.Fprintf(&b, "far_guid: %s\nfar_description: %s\n", l.FarGUID, strings.ReplaceAll(escape(l.FarDescription), ": ", ":%20"))
	}
	return b.Bytes()
}

func decodeLink(path string, data []byte) (l host.IBLink, err error) {
	var bad error
	err = decodeFields(path, data, linkFields(&l), func(name, value string) {
		switch name {
		case "far_guid":
			l.FarGUID = value
		case "far_description":
			l.FarDescription, bad = unescape(value)
		}
	})
	if err == nil && bad != nil {
		err = host.ErrGarbled(path, data)
	}
	return l, err
}

// Ends records the answers.
func (r *Recorder) Ends(ctx context.Context, device string, port int) (host.IBLink, error) {
	l, err := r.inner.Subnet.Ends(ctx, device, port)
	r.answer(subnetPath(device, port), encodeLink(l), err)
	return l, err
}

// Ends returns the recorded answers.
func (p *Player) Ends(_ context.Context, device string, port int) (host.IBLink, error) {
	name := subnetPath(device, port)
	b, err := p.Read(name, nil)
	if err != nil {
		return host.IBLink{}, err
	}
	l, err := decodeLink(name, b)
	l.Requests = datagrams(&l)
	return l, err
}

// datagrams is the number of datagrams: one for the local port, three for the far end, and one more for a switch.
func datagrams(l *host.IBLink) int {
	switch {
	case l.FarType == nil:
		return 1
	case *l.FarType == uint64(mad.Switch):
		return 5
	}
	return 4
}

// link rewrites answers with a pseudonym for the far end.
func (p *pseudonyms) link(name string, data []byte) []byte {
	l, err := decodeLink(name, data)
	if err != nil {
		return nil
	}
	l.FarDescription = SystemIn(p.systems, l.System())
	return []byte(p.addresses(string(encodeLink(l))))
}
