package capture

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"rdma_exporter/internal/host"
)

func dcbPath(netdev string) string { return "dcb/" + netdev + "/ieee" }

// dcbSelectors are the selectors of the APP table by name. Others are written as numbers.
var dcbSelectors = map[string]uint8{
	"ethertype": host.DCBSelectorEthertype, "stream": host.DCBSelectorStream, "datagram": host.DCBSelectorDatagram,
	"port": host.DCBSelectorPort, "dscp": host.DCBSelectorDSCP, "pcp": host.DCBSelectorPCP,
}

func selectorName(n uint8) string {
	for name, m := range dcbSelectors {
		if m == n {
			return name
		}
	}
	return strconv.Itoa(int(n))
}

func selectorNamed(name string) (uint8, error) {
	if n, ok := dcbSelectors[name]; ok {
		return n, nil
	}
	n, err := strconv.ParseUint(name, 10, 8)
	return uint8(n), err
}

// array is a line with one value per priority or traffic class.
type array struct {
	name  string
	value *host.PerPriority
}

func etsFields(e *host.DCBETS) ([]named, []array) {
	return []named{{"ets_willing", &e.Willing}, {"ets_capability", &e.Capability}, {"ets_cbs", &e.CreditBased}},
		[]array{{"ets_bandwidth", &e.Bandwidth}, {"ets_algorithm", &e.Algorithm}, {"ets_priority_class", &e.TrafficClass}}
}

func pfcFields(p *host.DCBPFC) ([]named, []array) {
	return []named{{"pfc_capability", &p.Capability}, {"pfc_enabled", &p.Enabled}, {"pfc_mbc", &p.MBC}, {"pfc_delay", &p.Delay}},
		[]array{{"pfc_requests", &p.Requests}, {"pfc_indications", &p.Indications}}
}

func bufferFields(b *host.DCBBuffer) ([]named, []array) {
	return []named{{"buffer_total", &b.Total}}, []array{{"buffer_sizes", &b.Sizes}, {"buffer_priority", &b.Buffer}}
}

// named is a line with one number.
type named struct {
	name  string
	value *uint64
}

// encodeDCB writes one line per member of the structs, and one per selector and priority of the APP table. pfc_enabled is hexadecimal: bit
// P is priority P.
func encodeDCB(c host.DCBConfig) []byte {
	var b bytes.Buffer
	write := func(numbers []named, arrays []array) {
		for _, n := range numbers {
			format := "%s: %d\n"
			if n.name == "pfc_enabled" {
				format = "%s: %#x\n"
			}
			fmt.Fprintf(&b, format, n.name, *n.value)
		}
		for _, a := range arrays {
			fmt.Fprintf(&b, "%s: %s\n", a.name, strings.Trim(fmt.Sprint(*a.value), "[]"))
		}
	}
	if c.DCBX != nil {
		fmt.Fprintf(&b, "dcbx: %d\n", *c.DCBX)
	}
	if c.PFC != nil {
		write(pfcFields(c.PFC))
	}
	if c.ETS != nil {
		write(etsFields(c.ETS))
	}
	if c.Buffer != nil {
		write(bufferFields(c.Buffer))
	}
	if c.Trust != nil {
		var names []string
		for _, s := range c.Trust {
			names = append(names, selectorName(s))
		}
		fmt.Fprintf(&b, "trust: %s\n", strings.Join(names, " "))
	}
	encodeApps(&b, c.Apps)
	return b.Bytes()
}

func encodeApps(b *bytes.Buffer, apps []host.DCBApp) {
	if apps == nil {
		return
	}
	fmt.Fprintf(b, "apps: %d\n", len(apps))
	for i := 0; i < len(apps); {
		first := apps[i]
		fmt.Fprintf(b, "app_%s_%d:", selectorName(first.Selector), first.Priority)
		for ; i < len(apps) && apps[i].Selector == first.Selector && apps[i].Priority == first.Priority; i++ {
			fmt.Fprintf(b, " %d", apps[i].Protocol)
		}
		b.WriteByte('\n')
	}
}

func decodeDCB(path string, data []byte) (c host.DCBConfig, err error) {
	err = lines(path, data, func(name, value string) error { return decodeDCBLine(&c, name, value) })
	if err != nil {
		return host.DCBConfig{}, err
	}
	host.SortDCBApps(c.Apps)
	return c, nil
}

func decodeDCBLine(c *host.DCBConfig, name, value string) error {
	group, _, _ := strings.Cut(name, "_")
	switch group {
	case "dcbx":
		n, err := strconv.ParseUint(value, 10, 64)
		c.DCBX = &n
		return err
	case "apps":
		c.Apps = []host.DCBApp{}
	case "app":
		return decodeApps(c, name, value)
	case "trust":
		c.Trust = []uint8{}
		for s := range strings.FieldsSeq(value) {
			n, err := selectorNamed(s)
			if err != nil {
				return err
			}
			c.Trust = append(c.Trust, n)
		}
	case "pfc":
		c.PFC = made(c.PFC)
		return decodeMember(name, value)(pfcFields(c.PFC))
	case "ets":
		c.ETS = made(c.ETS)
		return decodeMember(name, value)(etsFields(c.ETS))
	case "buffer":
		c.Buffer = made(c.Buffer)
		return decodeMember(name, value)(bufferFields(c.Buffer))
	}
	return nil
}

// made is p, or a new value if p is nil.
func made[T any](p *T) *T {
	if p == nil {
		return new(T)
	}
	return p
}

// decodeMember sets the struct member of a line.
func decodeMember(name, value string) func([]named, []array) error {
	return func(numbers []named, arrays []array) error {
		for _, n := range numbers {
			if n.name == name {
				v, err := strconv.ParseUint(value, 0, 64)
				*n.value = v
				return err
			}
		}
		for _, a := range arrays {
			if a.name == name {
				return decodeArray(a.value, value)
			}
		}
		return nil
	}
}

func decodeArray(to *host.PerPriority, value string) error {
	words := strings.Fields(value)
	if len(words) != len(to) {
		return host.ErrMalformed
	}
	for i, w := range words {
		n, err := strconv.ParseUint(w, 10, 64)
		if err != nil {
			return err
		}
		to[i] = n
	}
	return nil
}

func decodeApps(c *host.DCBConfig, name, value string) error {
	selector, priority, ok := strings.Cut(strings.TrimPrefix(name, "app_"), "_")
	s, err := selectorNamed(selector)
	if err != nil || !ok {
		return host.ErrMalformed
	}
	p, err := strconv.ParseUint(priority, 10, 8)
	if err != nil || p >= host.DCBPriorities {
		return host.ErrMalformed
	}
	for w := range strings.FieldsSeq(value) {
		n, err := strconv.ParseUint(w, 10, 16)
		if err != nil {
			return err
		}
		c.Apps = append(c.Apps, host.DCBApp{Selector: s, Priority: uint8(p), Protocol: uint16(n)})
	}
	return nil
}
