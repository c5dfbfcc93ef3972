package host_test

import (
	"os"
	"path/filepath"
	"testing"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/hosttest"
	"rdma_exporter/internal/host/rooted"
)

// TestNetdevChanges: each change is found, also in a directory that stays open and is not listed while it is the same.
func TestNetdevChanges(t *testing.T) {
	for name, before := range map[string]func(t *testing.T, h *host.Host, net string){
		"listed": func(_ *testing.T, h *host.Host, _ string) { h.Files.(*rooted.Tree).ForgetAll() },
		"open": func(t *testing.T, h *host.Host, net string) {
			hosttest.Age(t, net)
			for range 2 {
				h.ForRound().NetdevChanges("mlx5_0")
			}
			if !h.Files.Same(host.ClassDir + "/mlx5_0/device/net") {
				t.Error("not the same")
			}
		},
	} {
		t.Run(name, func(t *testing.T) { netdevsChange(t, before) })
	}
}

func netdevsChange(t *testing.T, prepare func(t *testing.T, h *host.Host, net string)) {
	hosttest.BothWays(t, func(t *testing.T, dir string, files *rooted.Tree) {
		machine := &host.Host{Files: files}
		const net = host.ClassDir + "/mlx5_0/device/net"
		add := func(name, index, port string) {
			hosttest.Put(t, dir, net+"/"+name+"/ifindex", index+"\n")
			hosttest.Put(t, dir, net+"/"+name+"/dev_port", port+"\n")
		}
		remove := func(name string) {
			if err := os.RemoveAll(filepath.Join(dir, net, name)); err != nil {
				t.Fatal(err)
			}
		}
		rename := func(from, to string) {
			if err := os.Rename(filepath.Join(dir, net, from), filepath.Join(dir, net, to)); err != nil {
				t.Fatal(err)
			}
		}
		hosttest.Put(t, dir, host.ClassDir+"/mlx5_0/node_type", "1: CA\n")
		add("eth0", "7", "0")
		var before uint64
		for _, c := range []struct {
			name    string
			do      func()
			changed bool
		}{
			{"at first", func() {}, false},
			{"nothing", func() {}, false},
			{"renamed", func() { rename("eth0", "rail0") }, true},
			{"a representor comes", func() { add("eth1", "12", "0") }, false},
			{"it is renamed", func() { rename("eth1", "pod7") }, false},
			{"it goes", func() { remove("pod7") }, false},
			{"a child interface", func() { add("rail0.8001", "3", "0") }, false},
			{"another port", func() { add("rail1", "8", "1") }, true},
			{"their names are exchanged", func() { rename("rail0", "x"); rename("rail1", "rail0"); rename("x", "rail1") }, true},
			{"made again under its name", func() { remove("rail0"); add("rail0", "101", "1") }, true},
			{"into a container", func() { remove("rail0"); remove("rail1") }, true},
			{"and back", func() { add("rail1", "7", "0") }, true},
			{"the directory goes", func() { remove("../net") }, true},
		} {
			prepare(t, machine, filepath.Join(dir, net))
			c.do()
			h := machine.ForRound()
			n := h.NetdevChanges("mlx5_0")
			if (n != before) != c.changed || h.NetdevChanges("mlx5_0") != n || h.NetdevChanges("mlx5_9") != 0 {
				t.Errorf("%s: %d changes, %d before", c.name, n, before)
			}
			before = n
		}
		if machine.NetdevChanges("mlx5_0") != 0 {
			t.Error("not 0 outside of a round")
		}
	})
}
