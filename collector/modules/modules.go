// Package modules reads kernel modules, their flavour and version, and device nodes.
package modules

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"rdma_exporter/collector/metric"
	"rdma_exporter/collector/shared"
	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/host/source"
	"rdma_exporter/internal/reading"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

var (
	moduleLoaded = metric.Host("rdma_kernel_module_loaded",
		"Whether a kernel module is live or built in. Drivers only while loaded; modules of the RDMA core always, except where ib_core is built in and the list of built-in modules cannot be read.",
		"/sys/module/MODULE/initstate, /lib/modules/RELEASE/modules.builtin", "module")
	driverInfo = metric.Host("rdma_driver_info",
		"Driver of an RDMA device, or out-of-tree module of the RDMA core, always 1. flavour: in-tree, ofed, out-of-tree. version is empty for in-tree modules. taint: P proprietary, O out-of-tree, E unsigned.",
		"/sys/module/MODULE/{version,taint}, /sys/module/mlx_compat", "module", "version", "flavour", "taint")
	devNodes = metric.Host("rdma_device_nodes",
		"Device nodes in /dev/infiniband by class: uverbs and rdma_cm (for applications), umad (for subnet tools).",
		"/dev/infiniband", "class")
	devNodesReadable = metric.Host("rdma_device_nodes_readable",
		"Device nodes in /dev/infiniband that the exporter's user has permission to open. They are not opened.",
		"access(2) on /dev/infiniband/*", "class")
)

// Modules of interest. Core modules are reported when they are missing, drivers are not.
var (
	coreModules   = []string{"ib_core", "ib_cm", "iw_cm", "rdma_cm", "ib_uverbs", "rdma_ucm", "ib_umad", "ib_ipoib"}
	driverModules = []string{
		"mlx5_core", "mlx5_ib", "mlx4_core", "mlx4_ib", "mlx_compat", "bnxt_en", "bnxt_re", "ice", "i40e", "idpf", "irdma",
		"efa", "hns3", "hns_roce_hw_v2", "erdma", "mana", "mana_ib", "ionic", "ionic_rdma", "qede", "qedr", "hfi1",
		"rdmavt", "cxgb4", "iw_cxgb4", "ocrdma", "ib_mthca", "usnic_verbs", "vmw_pvrdma", "rdma_rxe", "siw",
	}
)

// nodeClasses are the kinds of device nodes: the name without its number.
var nodeClasses = []string{"rdma_cm", "uverbs", "umad"}

// New returns the collector.
func New(with *shared.State) *shared.Collector {
	return &shared.Collector{
		Name:  "modules",
		Help:  "kernel modules, driver flavour and version, device nodes in /dev/infiniband",
		Descs: []*metric.Desc{moduleLoaded, driverInfo, driverAsPinned, driverPinInfo, devNodes, devNodesReadable},
		Read: shared.ReadHost("modules", source.Modules, func(r reading.Reads) hostdata.Modules {
			return hostdata.Modules{Modules: readModules(r), Nodes: ReadNodes(r)}
		}, func(n *snapshot.Node, m hostdata.Modules) {
			m.DriverPin = driverPin(with.Site, m.Modules)
			n.Modules = &m
		}),
		Emit: metric.EmitSection(func(n *snapshot.Node) *hostdata.Modules { return n.Modules }, emitModules),
	}
}

func readModules(r reading.Reads) []hostdata.Module {
	builtin, listed := builtinModules(r)
	ofed := r.Optional("sys/module/mlx_compat/initstate") != ""
	var out []hostdata.Module
	for _, name := range slices.Concat(coreModules, driverModules) {
		dir := "sys/module/" + name
		m := hostdata.Module{Name: name, Driver: slices.Contains(driverModules, name), BuiltIn: builtin[name]}
		m.Loaded = m.BuiltIn
		if state := r.Optional(dir + "/initstate"); state != "" {
			m.Loaded = state == "live"
		} else if _, err := r.Host.Files.List(dir); err == nil { // built in, with parameters
			m.Loaded, m.BuiltIn = true, true
		}
		if m.Loaded && !m.BuiltIn {
			m.Version, m.Taint = r.Optional(dir+"/version"), r.Optional(dir+"/taint")
		}
		if m.Loaded {
			m.Flavour = flavour(name, m.Taint, ofed)
		}
		// If ib_core is not in the kernel image, nothing that depends on it is. ib_core has parameters, so that a built-in
		// one is visible.
		m.Known = m.Loaded || listed || len(out) > 0 && !out[0].BuiltIn || name == "ib_core"
		out = append(out, m)
	}
	return out
}

// builtinModules lists the modules in the kernel image; ok is false without the list, as in a container without
// /lib/modules.
func builtinModules(r reading.Reads) (out map[string]bool, ok bool) {
	release := r.Optional("proc/sys/kernel/osrelease")
	if release == "" || strings.Contains(release, "/") {
		return nil, false
	}
	b, err := r.Host.Files.Read("lib/modules/"+release+"/modules.builtin", nil)
	if err != nil {
		return nil, false
	}
	out = map[string]bool{}
	for line := range bytes.Lines(b) {
		name := strings.TrimSuffix(path.Base(strings.TrimSpace(string(line))), ".ko")
		out[strings.ReplaceAll(name, "-", "_")] = true
	}
	return out, true
}

// inTree is the flavour of the kernel's own modules.
const inTree = "in-tree"

// flavour is decided by taint: an in-tree module has none. With OFED's mlx_compat loaded, its modules are OFED's.
func flavour(name, taint string, ofed bool) string {
	if !strings.Contains(taint, "O") {
		return inTree
	}
	for _, prefix := range []string{"mlx", "ib_", "rdma_", "iw_cm"} {
		if ofed && strings.HasPrefix(name, prefix) {
			return "ofed"
		}
	}
	return "out-of-tree"
}

// ReadNodes reads the permissions of the device nodes for applications.
func ReadNodes(r reading.Reads) []hostdata.NodeClass {
	names, err := r.Host.Files.List("dev/infiniband")
	if err != nil { // a container without /dev, or no driver with nodes
		r.IssueUnless(err, access.Absent)
		return nil
	}
	out := make([]hostdata.NodeClass, len(nodeClasses))
	for i, class := range nodeClasses {
		out[i].Class = class
		var modes []string
		for _, n := range names {
			if strings.TrimRight(n, "0123456789") != class {
				continue
			}
			out[i].Present++
			if r.Host.Files.Readable("dev/infiniband/"+n) == nil {
				out[i].Readable++
			}
			if class != "uverbs" {
				continue
			}
			mode, group, err := r.Host.Files.Mode("dev/infiniband/" + n)
			if err != nil {
				continue
			}
			modes = append(modes, fmt.Sprintf("%04o", mode))
			if group != nil && mode&0o006 != 0o006 && !slices.Contains(out[i].Groups, *group) {
				out[i].Groups = append(out[i].Groups, *group)
			}
		}
		slices.Sort(modes)
		out[i].Mode = strings.Join(slices.Compact(modes), ",")
	}
	return out
}

func emitModules(modules *hostdata.Modules, s metric.Sink) {
	for _, m := range modules.Modules {
		if m.Loaded || m.Known && !m.Driver {
			s.Emit(moduleLoaded, metric.BoolValue(m.Loaded), m.Name)
		}
		metric.EmitIf(s, m.Loaded && (m.Driver || m.Flavour != inTree), driverInfo, m.Name, m.Version, m.Flavour, m.Taint)
	}
	emitDriverPin(s, modules.DriverPin)
	for _, c := range modules.Nodes {
		s.Emit(devNodes, float64(c.Present), c.Class)
		s.Emit(devNodesReadable, float64(c.Readable), c.Class)
	}
}
