package proc

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/rooted"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/lldp"
)

// networkdHost returns a tree with an active networkd, whose connections are served by talk. The connection is closed
// when talk returns.
func networkdHost(t *testing.T, talk func(net.Conn)) (dir string, c NetworkdClient, accepted chan struct{}) {
	t.Helper()
	dir, err := os.MkdirTemp("", "networkd") // the path of a socket has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, d := range []string{"sys", "proc", "run/systemd/netif", "run/systemd/units"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("de9ef5dd360f4aa0be353bcc4cd10c4b", filepath.Join(dir, networkdActive)); err != nil {
		t.Fatal(err)
	}
	accepted = make(chan struct{}, 64)
	if talk != nil {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, networkdSocket))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				accepted <- struct{}{}
				go func() { talk(conn); _ = conn.Close() }()
			}
		}()
	}
	tree, err := rooted.Open(rooted.Paths{RootFS: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	return dir, NetworkdClient{tree}, accepted
}

// varlinkServer answers like sd_varlink: a message is a JSON object that ends with a NUL, and a connection has any
// number of calls.
func varlinkServer(methods map[string]func(parameters json.RawMessage) string) func(net.Conn) {
	return func(conn net.Conn) {
		for {
			var message []byte
			for one := make([]byte, 1); ; {
				if _, err := io.ReadFull(conn, one); err != nil {
					return
				}
				if one[0] == 0 {
					break
				}
				message = append(message, one[0])
			}
			var call struct {
				Method     string          `json:"method"`
				Parameters json.RawMessage `json:"parameters"`
			}
			if json.Unmarshal(message, &call) != nil {
				return
			}
			answer := fmt.Sprintf(`{"error":"org.varlink.service.MethodNotFound","parameters":{"method":%q}}`, call.Method)
			if m := methods[call.Method]; m != nil {
				answer = m(call.Parameters)
			}
			if _, err := conn.Write(append([]byte(answer), 0)); err != nil {
				return
			}
		}
	}
}

const getNeighbours = "io.systemd.Network.GetLLDPNeighbors"

// networkdOf serves the answer of a real networkd for interface 3, vswl0, and refuses others as dispatch_interface does
// (src/network/networkd-manager-varlink.c).
func networkdOf(answer string) func(net.Conn) {
	return varlinkServer(map[string]func(json.RawMessage) string{getNeighbours: func(parameters json.RawMessage) string {
		var p struct {
			InterfaceIndex int
			InterfaceName  string
		}
		if json.Unmarshal(parameters, &p) != nil || p.InterfaceIndex != 3 {
			return `{"error":"org.varlink.service.InvalidParameter","parameters":{"parameter":"InterfaceIndex"}}`
		}
		if p.InterfaceName != "vswl0" {
			return `{"error":"org.varlink.service.InvalidParameter","parameters":{"parameter":"InterfaceName"}}`
		}
		return answer
	}})
}

// framesIn returns the neighbours of saved frames, by system or chassis.
func framesIn(t *testing.T, b []byte) map[string]lldp.Neighbour {
	t.Helper()
	out := map[string]lldp.Neighbour{}
	for len(b) > 0 {
		n := binary.LittleEndian.Uint64(b)
		one, err := lldp.Parse(b[8 : 8+n])
		if err != nil {
			t.Fatal(err)
		}
		out[one.System()], b = one, b[8+n:]
	}
	return out
}

// TestNetworkd: testdata has the answers of systemd-networkd 257.13 and 262.1 (Debian) about the same three frames,
// sent to one end of a veth pair: a SONiC switch, a DPU without a name, and a switch with hostile names. The fields are
// those of 256 (src/shared/varlink-io.systemd.Network.c); 262 has added MUDURL and VlanID.
func TestNetworkd(t *testing.T) {
	for _, version := range []string{"257", "262"} {
		t.Run(version, func(t *testing.T) {
			answer, err := os.ReadFile("testdata/networkd/" + version + ".json")
			if err != nil {
				t.Fatal(err)
			}
			_, c, accepted := networkdHost(t, networkdOf(string(answer)))
			b, err := c.LLDPNeighbours(t.Context(), "vswl0", 3)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string][3]string{}
			for name, n := range framesIn(t, b) {
				got[name] = [3]string{n.ChassisID, n.Port(), fmt.Sprint(n.Forwards())}
			}
			if want := map[string][3]string{
				"leaf-1":           {"0c:42:a1:10:20:00", "etp4a", "true"},
				"dpu":              {"dpu", "0c:42:a1:10:20:31", "false"},
				"a��[31m�\"b\\ é'": {"0c:42:a1:10:20:01", "tab�del�", "true"},
			}; !reflect.DeepEqual(got, want) {
				t.Errorf("%q\nwant %q", got, want)
			}
			for netdev, index := range map[string]uint64{"eth0": 3, "vswl0": 4} { // of another network namespace
				if b, err := c.LLDPNeighbours(t.Context(), netdev, index); err != nil || len(b) != 0 {
					t.Errorf("%s %d: %q, %v", netdev, index, b, err)
				}
			}
			if len(accepted) != 3 {
				t.Errorf("%d connections, want 3", len(accepted))
			}
		})
	}
}

// TestNetworkdNotActive: a connection to the socket of a stopped networkd would start it.
func TestNetworkdNotActive(t *testing.T) {
	dir, c, accepted := networkdHost(t, networkdOf(`{"parameters":{"Neighbors":[]}}`))
	if err := os.Remove(filepath.Join(dir, networkdActive)); err != nil {
		t.Fatal(err)
	}
	ask := func() error {
		_, err := c.LLDPNeighbours(t.Context(), "vswl0", 3)
		return err
	}
	if err := ask(); !host.NoNetworkd(err) || !access.IsAbsent(err) {
		t.Error(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "run/systemd/units")); err != nil { // not mounted
		t.Fatal(err)
	}
	if err := ask(); !access.IsAbsent(err) {
		t.Error(err)
	}
	if len(accepted) != 0 {
		t.Error("networkd was asked")
	}
}

// TestNetworkdWithoutSocket: active without a socket, as before version 256.
func TestNetworkdWithoutSocket(t *testing.T) {
	_, c, _ := networkdHost(t, nil)
	if _, err := c.LLDPNeighbours(t.Context(), "vswl0", 3); !host.NoNetworkd(err) {
		t.Error(err)
	}
	if host.NoNetworkd(nil) || host.NoNetworkd(access.ErrLate) || host.NoNetworkd(syscall.EACCES) {
		t.Error("files are read beside an answer or a failure")
	}
}

func TestNetworkdErrors(t *testing.T) {
	answers := func(s string) func(net.Conn) {
		answer := func(json.RawMessage) string { return s }
		return varlinkServer(map[string]func(json.RawMessage) string{getNeighbours: answer})
	}
	fails := func(name string) func(net.Conn) { return answers(`{"error":"` + name + `","parameters":{}}`) }
	empty := `{"parameters":{"Neighbors":[],"x":"%s"}}`
	padded := func(size int) func(net.Conn) {
		return answers(fmt.Sprintf(empty, strings.Repeat("x", size-len(empty)+2)))
	}
	raw := func(parts ...string) func(net.Conn) {
		return func(conn net.Conn) {
			for _, p := range parts {
				_, _ = conn.Write([]byte(p))
			}
			_, _ = io.Copy(io.Discard, conn)
		}
	}
	for _, c := range []struct {
		name   string
		talk   func(net.Conn)
		reason access.Reason // empty: none
	}{
		{"no method: a networkd before 256", varlinkServer(nil), access.Unsupported},
		{"no interface", fails("org.varlink.service.InterfaceNotFound"), access.Unsupported},
		{"no permission", fails("org.varlink.service.PermissionDenied"), access.Permission},
		{"another error", fails("io.systemd.Network.Secret\\n" + strings.Repeat("x", 4000)), access.IO},
		{"in two parts, and more after the end", raw(`{"parameters":{"Neigh`, "bors\":[]}}\x00{\"parameters\"", ":{}}\x00"), ""},
		{"an answer of the size limit", padded(networkdAnswer), ""},
		{"a larger answer", padded(networkdAnswer + 1), access.IO},
		{"an answer without end", func(conn net.Conn) {
			for junk := bytes.Repeat([]byte("x"), 1<<16); ; {
				if _, err := conn.Write(junk); err != nil {
					return
				}
			}
		}, access.IO},
		{"no JSON", raw("\x1b[31m\n\x00"), access.Malformed},
		{"an empty message", raw("\x00"), access.Malformed},
		{"no parameters", raw("{}\x00"), access.Malformed},
		{"other parameters", answers(`{"parameters":{"Neighbors":"x"}}`), access.Malformed},
		{"another reply: a continuation", answers(`{"continues":true,"parameters":{"Neighbors":[]}}`), ""},
		{"closed at once", func(net.Conn) {}, access.IO},
		{"closed before the end", func(conn net.Conn) {
			_, _ = conn.Read(make([]byte, 512))
			_, _ = conn.Write([]byte(`{"parameters":{"Neighbors":[]}}`))
		}, access.IO},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, client, accepted := networkdHost(t, c.talk)
			b, err := client.ask(t.Context(), "vswl0", 3) // megabytes may take longer than the limit
			if c.reason == "" {
				if err != nil || len(b) != 0 {
					t.Errorf("%q, %v", b, err)
				}
				return
			}
			var e *access.Error
			if b != nil || !errors.As(err, &e) || e.Path != networkdSocket || access.ReasonOf(err) != c.reason {
				t.Errorf("%q, %v, reason %s, want %s", b, err, access.ReasonOf(err), c.reason)
			}
			if err != nil && (len(err.Error()) > 300 || strings.ContainsAny(err.Error(), "\n\x1b")) {
				t.Errorf("error of %d bytes: %q", len(err.Error()), err)
			}
			if len(accepted) != 1 {
				t.Errorf("%d connections, want 1", len(accepted))
			}
		})
	}
}

// TestNetworkdLate: a networkd that hangs costs the deadline, or the limit without one.
func TestNetworkdLate(t *testing.T) {
	for name, talk := range map[string]func(net.Conn){
		"no answer":        func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) },
		"half an answer":   func(conn net.Conn) { _, _ = conn.Write([]byte("{")); _, _ = io.Copy(io.Discard, conn) },
		"does not read it": func(net.Conn) { <-t.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			_, c, _ := networkdHost(t, talk)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if b, err := c.LLDPNeighbours(ctx, "vswl0", 3); b != nil || !errors.Is(err, access.ErrLate) {
				t.Errorf("%q, %v", b, err)
			}
			if b, err := c.LLDPNeighbours(t.Context(), "vswl0", 3); b != nil || !errors.Is(err, access.ErrLate) {
				t.Errorf("no deadline: %q, %v", b, err)
			}
		})
	}
}

// TestNetworkdSocket: the socket is looked up below the root, and has to be one.
func TestNetworkdSocket(t *testing.T) {
	outside, _ := listenUnix(t)
	for _, c := range []struct {
		name string
		put  func(path string) error
		want error
	}{
		{"a link to the outside", func(path string) error { return os.Symlink(outside, path) }, syscall.EXDEV},
		{"a file", func(path string) error { return os.WriteFile(path, nil, 0o666) }, syscall.ECONNREFUSED},
		{"a directory", func(path string) error { return os.Mkdir(path, 0o755) }, syscall.ECONNREFUSED},
		{"a socket without a listener", func(path string) error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			if err == nil {
				l.SetUnlinkOnClose(false)
				err = l.Close()
			}
			return err
		}, syscall.ECONNREFUSED},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, client, _ := networkdHost(t, nil)
			if err := c.put(filepath.Join(dir, networkdSocket)); err != nil {
				t.Fatal(err)
			}
			if b, err := client.LLDPNeighbours(t.Context(), "vswl0", 3); b != nil || !errors.Is(err, c.want) {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
	refused := &access.Error{Op: "query", Path: networkdSocket, Err: syscall.EACCES}
	if needs := source.LLDP.NeedsAfter(refused); needs != source.NeedsNetworkd {
		t.Error(needs)
	}
	refused = &access.Error{Op: "listen for", Path: "LLDP frames", Err: syscall.EPERM}
	if needs := source.LLDP.NeedsAfter(refused); needs != source.NeedsNetRaw {
		t.Error(needs)
	}
}

// TestNetworkdLongRoot: a root whose path has no room in a socket address.
func TestNetworkdLongRoot(t *testing.T) {
	dir, _, _ := networkdHost(t, networkdOf(`{"parameters":{"Neighbors":[]}}`))
	deep := filepath.Join(dir, strings.Repeat(strings.Repeat("d", 40)+"/", 4))
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"run", "sys", "proc"} {
		if err := os.Rename(filepath.Join(dir, name), filepath.Join(deep, name)); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := rooted.Open(rooted.Paths{RootFS: deep})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tree.Close() }()
	if b, err := (NetworkdClient{tree}).LLDPNeighbours(t.Context(), "vswl0", 3); err != nil || len(b) != 0 {
		t.Errorf("%q, %v", b, err)
	}
}
