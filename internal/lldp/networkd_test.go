package lldp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// parsed returns the neighbours of saved frames; an error for each that is rejected.
func parsed(t *testing.T, b []byte) (out []Neighbour, rejected int) {
	t.Helper()
	for len(b) > 0 {
		n := binary.LittleEndian.Uint64(b)
		frame := b[8 : 8+n]
		if x, err := Parse(frame); err != nil {
			rejected++
		} else {
			out = append(out, x)
		}
		b = b[8+n:]
	}
	return out, rejected
}

// answerOf returns an answer for interface 3.
func answerOf(neighbours ...string) []byte {
	return fmt.Appendf(nil, `{"Neighbors":[{"InterfaceIndex":3,"InterfaceName":"eth0","Neighbors":[%s]}]}`,
		strings.Join(neighbours, ","))
}

// octets returns a JSON array of n bytes with a value.
func octets(n, value int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(fmt.Sprint(value, ","), n), ",") + "]"
}

func TestNetworkd(t *testing.T) {
	const zero = "00:00:00:00:00:00"
	long := strings.Repeat("a", 300)
	for _, c := range []struct {
		name, neighbour string
		want            Neighbour // zero: rejected
	}{
		{
			"a switch", `{"ChassisID":"0c:42:a1:10:20:00","RawChassisID":[4,12,66,161,16,32,0],"PortID":"etp4a","RawPortID":[7,101,116,112,52,97],` +
				`"PortDescription":"Ethernet12","SystemName":"leaf-1","SystemDescription":"SONiC","EnabledCapabilities":20,"VlanID":7}`,
			Neighbour{ChassisID: "0c:42:a1:10:20:00", PortID: "etp4a", PortDescription: "Ethernet12", SystemName: "leaf-1", Enabled: 20, portIsName: true},
		},
		{
			"without names and capabilities", `{"RawChassisID":[7,100,112,117],"RawPortID":[3,12,66,161,16,32,49]}`,
			Neighbour{ChassisID: "dpu", PortID: "0c:42:a1:10:20:31"},
		},
		{
			"escaped texts", `{"RawChassisID":[7,99],"RawPortID":[7,112],"PortDescription":"Stra\\303\\237e \\'7\\' \\\"x\\\" C:\\\\tmp","SystemName":"a\\n\\033[31m\\377\\q\\77\\400\\"}`,
			Neighbour{ChassisID: "c", PortID: "p", PortDescription: `Straße '7' "x" C:\tmp`, SystemName: `a��[31m�\q\77\400\`, portIsName: true},
		},
		{
			"the longest IDs", `{"RawChassisID":` + octets(256, 120) + `,"RawPortID":` + octets(256, 120) + `}`,
			Neighbour{ChassisID: strings.Repeat("x", 255), PortID: strings.Repeat("x", 255), portIsName: true},
		},
		{"a longer chassis ID", `{"RawChassisID":` + octets(257, 7) + `,"RawPortID":[7,112]}`, Neighbour{}},
		{"a longer port ID", `{"RawChassisID":[7,99],"RawPortID":` + octets(257, 7) + `}`, Neighbour{}},
		{"no chassis ID", `{"RawPortID":[7,112]}`, Neighbour{}},
		{"an empty port ID", `{"RawChassisID":[7,99],"RawPortID":[]}`, Neighbour{}},
		{
			"texts longer than a TLV", `{"RawChassisID":[7,99],"RawPortID":[7,112],"PortDescription":"` +
				strings.Repeat(long, 200) + `","SystemName":"` + long + long + `"}`,
			Neighbour{ChassisID: "c", PortID: "p", PortDescription: long[:255], SystemName: long[:255], portIsName: true},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			frames, err := Networkd(answerOf(c.neighbour), 3)
			if err != nil {
				t.Fatal(err)
			}
			got, rejected := parsed(t, frames)
			if c.want == (Neighbour{}) {
				if len(got) != 0 || rejected != 1 {
					t.Errorf("%+v, %d rejected", got, rejected)
				}
				return
			}
			c.want.Source, c.want.TTL = zero, 2*time.Minute
			if rejected != 0 || !reflect.DeepEqual(got, []Neighbour{c.want}) {
				t.Errorf("%+v, %d rejected\nwant %+v", got, rejected, c.want)
			}
		})
	}
}

func TestNetworkdAnswers(t *testing.T) {
	const one = `{"RawChassisID":[7,99],"RawPortID":[7,112]}`
	for name, answer := range map[string]string{
		"no interface": `{"Neighbors":[]}`, "another interface": strings.Replace(string(answerOf(one)), ":3", ":4", 1),
		"no neighbour": string(answerOf()), "null": `{"Neighbors":null}`,
	} {
		if frames, err := Networkd([]byte(answer), 3); err != nil || len(frames) != 0 {
			t.Errorf("%s: %q, %v", name, frames, err)
		}
	}
	if frames, err := Networkd(answerOf(one, `{}`, one), 3); err != nil {
		t.Error(err)
	} else if got, rejected := parsed(t, frames); len(got) != 2 || rejected != 1 {
		t.Errorf("%+v, %d rejected", got, rejected)
	}
	for n, want := range map[int]int{mostNeighbours: mostNeighbours, mostNeighbours + 1: mostNeighbours} {
		frames, err := Networkd(answerOf(slices.Repeat([]string{one}, n)...), 3)
		if got, _ := parsed(t, frames); err != nil || len(got) != want {
			t.Errorf("%d of %d neighbours, %v", len(got), n, err)
		}
	}
	for name, answer := range map[string]string{
		"nothing": "", "no JSON": "secret", "no object": "[]", "no list": `{"Neighbors":{}}`,
		"cut":                      string(answerOf(one))[:40],
		"a number that is no byte": string(answerOf(`{"RawChassisID":[256],"RawPortID":[7,112]}`)),
		"a negative index":         `{"Neighbors":[{"InterfaceIndex":-1}]}`,
		"capabilities of 17 bits":  string(answerOf(`{"RawChassisID":[7,99],"RawPortID":[7,112],"EnabledCapabilities":65536}`)),
		"a name that is no text":   string(answerOf(`{"RawChassisID":[7,99],"RawPortID":[7,112],"SystemName":["secret"]}`)),
		"depth":                    `{"Neighbors":` + strings.Repeat("[", 20000),
	} {
		frames, err := Networkd([]byte(answer), 3)
		if err == nil || frames != nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %q, %v", name, frames, err)
		}
	}
}

// TestUnescaped: every byte by cescape_char (systemd, src/basic/escape.c).
func TestUnescaped(t *testing.T) {
	short := map[byte]string{
		'\a': `\a`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\v': `\v`, '\\': `\\`, '"': `\"`, '\'': `\'`,
	}
	var escaped strings.Builder
	var want []byte
	for c := range 256 {
		switch s := short[byte(c)]; {
		case s != "":
			escaped.WriteString(s)
		case c < ' ' || c >= 127:
			fmt.Fprintf(&escaped, `\%03o`, c)
		default:
			escaped.WriteByte(byte(c))
		}
		want = append(want, byte(c))
	}
	if got := unescaped(escaped.String()); !bytes.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for _, kept := range []string{`\`, `\q`, `\7`, `\77`, `\08x`, `\400`, `\+12`, `\-12`} {
		if got := unescaped(kept); string(got) != kept {
			t.Errorf("%q became %q", kept, got)
		}
	}
}

func FuzzNetworkd(f *testing.F) {
	f.Add(answerOf(`{"RawChassisID":[4,12,66,161,16,32,0],"RawPortID":[7,101],"SystemName":"a\\303\\251","EnabledCapabilities":20}`))
	f.Add([]byte(`{"neighbors":[{"interfaceindex":3,"NEIGHBORS":[{"RawChassisID":"BwA="}]}]}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		frames, err := Networkd(answer, 3)
		if err != nil {
			return
		}
		parsed(t, frames) // panics if a length is wrong
	})
}
