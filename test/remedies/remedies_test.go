//go:build !race

// Package remedies_test carries out each command that check --setup proposes, on a model of the host.
package remedies_test

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rdma_exporter/internal/setup"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/test/machines"
)

// invisible are remedies whose effect the tool cannot read until something else happens, or that are no commands.
var invisible = []struct{ setting, remedy, reason string }{
	{"max_payload", "firmware setup", "at the next boot"},
	{"iommu_mode", "kernel command line", "at the next boot"},
	{"ats", "^mlxconfig ", "at the next boot"},
	{"ofed_not_in_use", "reboot", "at the next boot"},
	{"modules_of_other_kernel", "^dkms autoinstall", "builds modules"},
	{"gds_loaded", "^dkms autoinstall", "builds modules"},
	{"gds_version", "^once no process", "when no process uses the driver"},
	{"gds_compat_reads", "^gdscheck", "finds the cause only"},
	{"memlock_of_jobs", "", "what runs keeps its limit"},
	{"irq_locality", "smp_affinity_list", "interrupts are counted since the driver has requested them"},
	{"pkey_membership", "subnet manager", "in the subnet manager"},
	{"sl_to_vl", "subnet manager", "in the subnet manager"},
	{"rdma_active_mtu", "subnet manager", "in the subnet manager"},
	{"rdma_active_mtu", "^set the MTU of the bond", "the name of the bond is not part of the reading"},
	{"netdev_mtu", "^set the MTU of the bond", "the name of the bond is not part of the reading"},
	{"nccl_default_gid", "^give the netdev", "the name of the bond is not part of the reading"},
	{"nccl_default_gid", "^export NCCL_IB_ADDR_FAMILY", "jobs that are started later"},
	{"mesh_subnets", "^give each", "addresses of the site"},
	{"ipoib_mode", "^not with this driver", "the driver has no connected mode"},
	{"nccl_socket_ifname", "INTERFACE", "the interface of the site"},
	{"nccl_topo_file", "", "a file of the job"},
}

func isInvisible(r hostdata.SetupRow) bool {
	for _, x := range invisible {
		if x.setting == r.Setting && regexp.MustCompile(x.remedy).MatchString(r.Remedy) {
			return true
		}
	}
	return false
}

// TestRemedies: a command that is proposed has its effect, alone and with all others, nothing gets worse by it, and it
// is not followed by another proposal.
func TestRemedies(t *testing.T) {
	machines.Each(t, func(t *testing.T, name string) {
		node := read(t, machines.Fixture(name))
		if node.Setup == nil {
			return
		}
		sites := siteOf(node)
		carryOut(t, name, node, sites)
		if machines.IsVariant(t, name) { // settings are those of its base
			return
		}
		for _, v := range variants {
			n := clone(node)
			if !v.change(n) {
				continue
			}
			t.Run(v.name, func(t *testing.T) {
				w := sites
				if v.wants != nil {
					w = v.wants
				}
				carryOut(t, name+"/"+v.name, n, w)
			})
		}
	})
}

// read returns the node of the last round of a recording.
func read(t *testing.T, file string) *snapshot.Node {
	t.Helper()
	m, sched := machines.Open(t, file)
	times := m.Player.Times()
	if err := m.Seek(times[len(times)-1]); err != nil {
		t.Fatal(err)
	}
	p, err := sched.Collect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p.Node()
}

// siteOf returns what the site configuration of a recording wants, according to its rows.
func siteOf(n *snapshot.Node) setup.Wants {
	wanted := map[string]string{}
	key := func(setting, device string, n int) string {
		return setting + " " + device + " " + strconv.Itoa(n)
	}
	for _, r := range n.Setup.Rows {
		if r.Basis == hostdata.SetupSite {
			wanted[key(r.Setting, r.Device, r.Port)] = r.Wanted
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	return func(setting, device string, n int, _ string) string { return wanted[key(setting, device, n)] }
}

func byKey(rows []hostdata.SetupRow) map[string]hostdata.SetupRow {
	out := map[string]hostdata.SetupRow{}
	for _, r := range rows {
		out[r.Setting+" of "+r.Object] = r
	}
	return out
}

// carryOut carries out each remedy alone, and all together.
func carryOut(t *testing.T, name string, node *snapshot.Node, wants setup.Wants) {
	t.Helper()
	before := byKey(setup.Evaluate(clone(node), wants))
	all := &model{Node: clone(node), writes: map[string]string{}}
	for _, key := range slices.Sorted(maps.Keys(before)) {
		r := before[key]
		if r.State == hostdata.SetupDiffers && r.Found == r.Wanted {
			t.Errorf("%s: %s differs, and is as wanted: %s", name, key, r.Found)
		}
		if strings.Contains(r.Remedy, "  ") || strings.ContainsAny(r.Remedy, "{}\n") {
			t.Errorf("%s: %s: a part of the remedy is missing: %s", name, key, r.Remedy)
		}
		if r.State != hostdata.SetupDiffers || isInvisible(r) {
			continue
		}
		for _, m := range []*model{{Node: clone(node), writes: map[string]string{}}, all} {
			if m.job = ""; r.Device == "" {
				m.job = r.Object
			}
			if err := m.run(r.Remedy); err != nil {
				t.Errorf("%s: %s: %v", name, key, err)
				return
			}
			if m == all {
				continue
			}
			after := byKey(setup.Evaluate(m.Node, wants))
			if got, ok := after[key]; ok && got.State != hostdata.SetupOK {
				t.Errorf("%s: %s: after %s it is %s %q, want %q, before %q", name, key, r.Remedy, got.State, got.Found,
					got.Wanted, r.Found)
			}
			compare(t, name+": after "+r.Remedy, before, after)
		}
	}
	after := byKey(setup.Evaluate(all.Node, wants))
	compare(t, name+": after all", before, after)
	for key, r := range after {
		if r.State == hostdata.SetupDiffers && !isInvisible(r) {
			t.Errorf("%s: after all %s is proposed: %s, found %q, want %q", name, key, r.Remedy, r.Found, r.Wanted)
		}
	}
}

// compare finds the rows that got worse, and new proposals.
func compare(t *testing.T, what string, before, after map[string]hostdata.SetupRow) {
	t.Helper()
	for key, r := range after {
		if was := before[key]; r.State != hostdata.SetupOK && was.State != r.State &&
			!(was.State == "" && r.State == hostdata.SetupUnknown) {
			t.Errorf("%s: %s was %s, is %s: found %q, want %q: %s", what, key, was.State, r.State, r.Found, r.Wanted, r.Remedy)
		}
	}
}

// clone returns a deep copy of a node.
func clone(n *snapshot.Node) *snapshot.Node {
	return deep(reflect.ValueOf(n)).Interface().(*snapshot.Node)
}

func deep(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(deep(v.Elem()))
		}
	case reflect.Slice:
		if !v.IsNil() {
			out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				out.Index(i).Set(deep(v.Index(i)))
			}
		}
	case reflect.Array:
		for i := range v.Len() {
			out.Index(i).Set(deep(v.Index(i)))
		}
	case reflect.Map:
		if !v.IsNil() {
			out.Set(reflect.MakeMap(v.Type()))
			for _, k := range v.MapKeys() {
				out.SetMapIndex(k, deep(v.MapIndex(k)))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				out.Field(i).Set(deep(v.Field(i)))
			}
		}
	}
	return out
}
