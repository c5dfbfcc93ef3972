package setup

import (
	"testing"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
)

// jobNode returns a host with two compute devices, each below the switch of a GPU, one of storage, and a job over four
// nodes with a process on each GPU.
func jobNode() *snapshot.Node {
	state := uint64(4)
	device := func(name, role, netdev string) snapshot.Device {
		s := state
		return snapshot.Device{Name: name, FunctionType: snapshot.Physical, Ports: []snapshot.Port{{
			Number: 1, LinkLayer: "Ethernet", Role: role, State: &s, Netdev: []snapshot.Netdev{{Name: netdev}},
			RoCEv2: map[string]snapshot.GIDFamily{"ipv4": {Entries: 1, First: 3}, "link_local": {Entries: 1, First: 1}},
		}}}
	}
	n := &snapshot.Node{
		InfiniBand: &snapshot.InfiniBand{Devices: []snapshot.Device{
			device("mlx5_0", "compute", "eth0"), device("mlx5_1", "compute", "eth1"), device("mlx5_2", "other", "stor0"),
		}},
		GDR: &accel.GDR{
			GPUs: []accel.GDRGPU{{Index: "0", PCIAddress: "0000:10:00.0"}, {Index: "1", PCIAddress: "0000:20:00.0"}},
			NICs: []accel.GDRNIC{
				{Device: "mlx5_0", Role: "compute", PCIAddress: "0000:11:00.0"},
				{Device: "mlx5_1", Role: "compute", PCIAddress: "0000:21:00.0"},
				{Device: "mlx5_2", Role: "other", PCIAddress: "0000:31:00.0"},
			},
			Pairs: []accel.GDRPair{
				{GPU: 0, NIC: 0, Distance: "PXB"},
				{GPU: 0, NIC: 1, Distance: "SYS"},
				{GPU: 0, NIC: 2, Distance: "PIX"},
				{GPU: 1, NIC: 0, Distance: "SYS"},
				{GPU: 1, NIC: 1, Distance: "PXB"},
				{GPU: 1, NIC: 2, Distance: "SYS"},
			},
			Processes: []accel.Process{
				{PID: 1, Command: "python3", Job: "slurm/7", HasNCCL: true, Env: map[string]string{"SLURM_JOB_NUM_NODES": "4"}, Conf: map[string]string{}},
				{PID: 2, Command: "python3", Job: "slurm/7", HasNCCL: true, Env: map[string]string{"SLURM_JOB_NUM_NODES": "4"}, Conf: map[string]string{}},
			},
		},
		Setup: &hostdata.Setup{Files: map[string]hostdata.SetupFile{}},
	}
	withFiles(n, map[string]string{
		netDir: "eno1\neth0\neth1\nlo\nstor0", netDir + "/eno1/flags": "0x1003", netDir + "/eth0/flags": "0x1003",
		netDir + "/stor0/flags": "0x1002",
	})
	for i := range n.GDR.GPUs {
		n.GDR.GPUs[i].Process = &n.GDR.Processes[i]
	}
	return n
}

// setEnv sets a variable of both processes.
func setEnv(name, value string) func(*snapshot.Node) {
	return func(n *snapshot.Node) {
		for i := range n.GDR.Processes {
			n.GDR.Processes[i].Env[name] = value
		}
	}
}

func pod(n *snapshot.Node) {
	for i := range n.GDR.Processes {
		n.GDR.Processes[i].Job = "kubernetes/1"
	}
}

func noProcesses(n *snapshot.Node) { n.GDR.Processes = nil }

func TestJobInterfaces(t *testing.T) {
	const want = ` want "interfaces that are up" by machine`
	const remedy = `; set: export NCCL_SOCKET_IFNAME=INTERFACE # of the job: the management interface`
	set := func(value string) func(*snapshot.Node) { return setEnv("NCCL_SOCKET_IFNAME", value) }
	checkRows(t, "nccl_socket_ifname", jobNode, []rowCase{
		{name: "not set"},
		{name: "no jobs", node: both(set("eno9"), noProcesses)},
		{name: "excluded ones", node: set("^docker")},
		{name: "as wanted", node: set("eno1"), want: []string{`slurm/7 ok "eno1"` + want}},
		{name: "in the file of the host", node: both(addFiles("etc/nccl.conf", "# x\nNCCL_SOCKET_IFNAME=eno9"), func(n *snapshot.Node) { n.GDR.Processes[0].Conf, n.GDR.Processes[1].Conf = nil, nil }), want: []string{
			`slurm/7 differs/info "eno9"` + want + `; no interface eno9` + remedy,
		}},
		{name: "prefix", node: set("eno,eth"), want: []string{`slurm/7 ok "eno,eth"` + want}},
		{name: "missing", node: set("=eno,eth0"), want: []string{`slurm/7 differs/info "=eno,eth0"` + want + `; no interface eno` + remedy}},
		{name: "down", node: set("stor0"), want: []string{`slurm/7 differs/info "stor0"` + want + `; stor0 is down` + remedy}},
		{name: "without address", node: both(set("eth0"), func(n *snapshot.Node) { delete(n.InfiniBand.Devices[0].Ports[0].RoCEv2, "ipv4") }), want: []string{
			`slurm/7 differs/info "eth0"` + want + `; eth0 of mlx5_0/1 has no IP address` + remedy,
		}},
		{name: "of a container", node: both(set("eth9"), pod), want: []string{`kubernetes/1 unknown ""` + want + `; the interfaces of the container are not visible`}},
		{name: "not visible", node: both(set("eno1"), addFiles(netDir, "!permission")), want: []string{`slurm/7 unknown ""` + want + `; /sys/class/net of the host is not readable`}},
		{name: "site", node: set("stor0"), site: "stor*", want: []string{`slurm/7 ok "stor0" want "stor*" by site; stor0 is down`}},
	})
}

func TestJobHCA(t *testing.T) {
	const want = ` want "=mlx5_0,mlx5_1" by machine`
	const remedy = `; set: export NCCL_IB_HCA==mlx5_0,mlx5_1 # of the job, or in nccl.conf; = before the list: exact names`
	set := func(value string) func(*snapshot.Node) { return setEnv("NCCL_IB_HCA", value) }
	checkRows(t, "nccl_ib_hca", jobNode, []rowCase{
		{name: "not set"},
		{name: "as wanted", node: set("mlx5_0,mlx5_1:1"), want: []string{`slurm/7 ok "mlx5_0,mlx5_1:1"` + want}},
		{name: "rails and planes", node: set("mlx5_0:1:0:1,mlx5_1::1"), want: []string{`slurm/7 ok "mlx5_0:1:0:1,mlx5_1::1"` + want}},
		{name: "excluded", node: set("^mlx5_2"), want: []string{`slurm/7 ok "^mlx5_2"` + want}},
		{name: "storage device", node: set("mlx5"), want: []string{`slurm/7 differs/info "mlx5"` + want + `; mlx5_2 not of the compute network` + remedy}},
		{name: "names none", node: set("=mlx5_8,bnxt_re0"), want: []string{
			`slurm/7 differs/warning "=mlx5_8,bnxt_re0"` + want + `; no device mlx5_8; no device bnxt_re0` + remedy,
		}},
		{name: "one is missing", node: set("mlx5_0,mlx5_1,mlx5_9"), want: []string{`slurm/7 differs/info "mlx5_0,mlx5_1,mlx5_9"` + want + `; no device mlx5_9` + remedy}},
		{name: "one is down", node: both(set("mlx5_0,mlx5_1"), func(n *snapshot.Node) { *n.InfiniBand.Devices[1].Ports[0].State = 1 }), want: []string{
			`slurm/7 differs/info "mlx5_0,mlx5_1" want "=mlx5_0" by machine; mlx5_1 has no ACTIVE port; set: export NCCL_IB_HCA==mlx5_0 # of the job, or in nccl.conf; = before the list: exact names`,
		}},
		{name: "without the nearest", node: set("mlx5_0"), want: []string{
			`slurm/7 differs/info "mlx5_0"` + want + `; GPU 1 without its nearest device mlx5_1` + remedy,
		}},
		{name: "devices not read", node: both(set("mlx5_0"), func(n *snapshot.Node) { n.InfiniBand = nil })},
		{name: "site", node: set("mlx5"), site: "mlx5", want: []string{`slurm/7 ok "mlx5" want "mlx5" by site; mlx5_2 not of the compute network`}},
	})
}

func TestJobLevel(t *testing.T) {
	const remedy = `; set: unset NCCL_NET_GDR_LEVEL NCCL_IB_GDR_LEVEL # of the job, or in nccl.conf`
	set := func(value string) func(*snapshot.Node) { return setEnv("NCCL_NET_GDR_LEVEL", value) }
	checkRows(t, "nccl_gdr_level", jobNode, []rowCase{
		{name: "not set"},
		{name: "as wanted", node: set("PHB"), want: []string{`slurm/7 ok "PHB" want "not set" by machine`}},
		{name: "forbids", node: set("PIX"), want: []string{
			`slurm/7 differs/warning/RDMAGPUDirectUnavailable/job_settings "PIX" want "PXB" by machine; GPU 0 and mlx5_0 are at PXB; GPU 1 and mlx5_1 are at PXB` + remedy,
		}},
		{name: "no level", node: set("near"), want: []string{`slurm/7 differs/info "near" want "not set" by machine; no distance of NCCL: the setting has no effect` + remedy}},
		{name: "former name", node: setEnv("NCCL_IB_GDR_LEVEL", "5"), want: []string{
			`slurm/7 differs/info "NCCL_IB_GDR_LEVEL=5" want "not set" by guide; NCCL_IB_GDR_LEVEL has no effect since NCCL 2.4` + remedy,
		}},
		{name: "site", node: set("PIX"), site: "PIX|PXB", want: []string{
			`slurm/7 ok "PIX" want "PIX|PXB" by site; GPU 0 and mlx5_0 are at PXB; GPU 1 and mlx5_1 are at PXB`,
		}},
	})
}

func TestJobDisabled(t *testing.T) {
	const remedy = `; set: unset NCCL_IB_DISABLE # of the job, or in nccl.conf`
	set := func(value string) func(*snapshot.Node) { return setEnv("NCCL_IB_DISABLE", value) }
	transport := func(reason string) func(*snapshot.Node) {
		return func(n *snapshot.Node) { n.GDR.GPUs[0].Transport = &accel.GDRTransport{Reason: reason} }
	}
	const several = `; the job spans several nodes, and this host has ACTIVE compute ports`
	checkRows(t, "nccl_ib_disable", jobNode, []rowCase{
		{name: "not set"},
		{name: "as wanted", node: set("0"), want: []string{`slurm/7 ok "0" want "0" by machine` + several}},
		{name: "differs", node: set("1"), want: []string{`slurm/7 differs/warning/RDMAGPUDirectStaging/sockets "1" want "0" by machine` + several + remedy}},
		{name: "in an NVLink domain", node: both(set("1"), transport("nvlink_domain")), want: []string{`slurm/7 differs/info "1" want "0" by machine` + several + remedy}},
		{name: "one node", node: both(set("1"), setEnv("SLURM_JOB_NUM_NODES", "1")), want: []string{
			`slurm/7 differs/info "1" want "0" by machine; the job runs on one node, or on an unknown number` + remedy,
		}},
		{name: "no compute port", node: both(set("1"), func(n *snapshot.Node) { n.InfiniBand.Devices = n.InfiniBand.Devices[2:] })},
		{name: "accepted by the site", node: set("1"), site: Any},
	})
}

func TestJobGID(t *testing.T) {
	set := func(value string) func(*snapshot.Node) { return setEnv("NCCL_IB_GID_INDEX", value) }
	entry := func(kind string) func(*snapshot.Node) {
		return func(n *snapshot.Node) {
			n.GDR.JobGIDs = []accel.GDRJobGID{{Device: "mlx5_0", Port: 1, Index: 0, Type: kind, Process: &n.GDR.Processes[0]}}
		}
	}
	checkRows(t, "nccl_gid_index", jobNode, []rowCase{
		{name: "not set"},
		{name: "selected by NCCL", node: set("-1"), want: []string{`slurm/7 ok "-1" want "-1" by guide`}},
		{name: "InfiniBand, or tables not read", node: set("0")},
		{name: "as wanted", node: both(set("3"), entry("roce_v2")), want: []string{`slurm/7 ok "3" want "RoCE v2 entry" by machine`}},
		{name: "differs", node: both(set("0"), entry("roce_v1")), want: []string{
			`slurm/7 differs/warning/RDMAPortMisconfigured/job_gid "0" want "3" by machine; entry 0 of mlx5_0/1 is RoCE v1; set: unset NCCL_IB_GID_INDEX # of the job, or in nccl.conf: NCCL selects a RoCE v2 entry`,
		}},
		{name: "empty entry", node: both(set("9"), entry("")), site: "9", want: []string{`slurm/7 ok "9" want "9" by site; entry 9 of mlx5_0/1 is empty`}},
	})
}

func TestJobNumbers(t *testing.T) {
	type number struct {
		setting, variable string
		ok, bad           string
		want              string
	}
	for _, c := range []number{
		{"nccl_timeout", "NCCL_IB_TIMEOUT", "22", "14", "18 to 22"},
		{"nccl_timeout", "NCCL_IB_TIMEOUT", "0x14", "0", "18 to 22"},
		{"nccl_retry_cnt", "NCCL_IB_RETRY_CNT", "7", "3", "7"},
		{"nccl_sl", "NCCL_IB_SL", "5", "12", "0 to 7"},
		{"nccl_qps", "NCCL_IB_QPS_PER_CONNECTION", "4", "64", "1 to 16"},
		{"nccl_qps", "NCCL_IB_QPS_PER_CONNECTION", "16", "four", "1 to 16"},
	} {
		remedy := ""
		for k := range Checks {
			if Checks[k].ID == c.setting {
				remedy = Checks[k].Remedy
			}
		}
		checkRows(t, c.setting, jobNode, []rowCase{
			{name: "not set"},
			{name: "no NCCL", node: both(setEnv(c.variable, c.bad), func(n *snapshot.Node) { n.GDR.Processes[0].HasNCCL, n.GDR.Processes[1].HasNCCL = false, false })},
			{name: "as wanted " + c.ok, node: setEnv(c.variable, c.ok), want: []string{`slurm/7 ok "` + c.ok + `" want "` + c.want + `" by guide`}},
			{name: "differs " + c.bad, node: setEnv(c.variable, c.bad), want: []string{`slurm/7 differs/info "` + c.bad + `" want "` + c.want + `" by guide; set: ` + remedy}},
			{name: "site " + c.bad, node: setEnv(c.variable, c.bad), site: c.bad, want: []string{`slurm/7 ok "` + c.bad + `" want "` + c.bad + `" by site`}},
		})
	}
	infiniband := func(n *snapshot.Node) {
		for i := range n.InfiniBand.Devices {
			n.InfiniBand.Devices[i].Ports[0].LinkLayer = "InfiniBand"
		}
	}
	checkRows(t, "nccl_adaptive_routing", jobNode, []rowCase{
		{name: "RoCE", node: setEnv("NCCL_IB_ADAPTIVE_ROUTING", "1")},
		{name: "as wanted", node: both(infiniband, setEnv("NCCL_IB_ADAPTIVE_ROUTING", "1")), want: []string{`slurm/7 ok "1" want "1" by guide`}},
		{name: "differs", node: both(infiniband, setEnv("NCCL_IB_ADAPTIVE_ROUTING", "0")), want: []string{
			`slurm/7 differs/info "0" want "1" by guide; set: unset NCCL_IB_ADAPTIVE_ROUTING # of the job, or in nccl.conf`,
		}},
	})
	checkRows(t, "nccl_sl", jobNode, []rowCase{
		{name: "InfiniBand", node: both(infiniband, setEnv("NCCL_IB_SL", "12")), want: []string{`slurm/7 ok "12" want "0 to 15" by guide`}},
		{name: "a virtual lane in use", node: both(infiniband, virtualLanes(1), setEnv("NCCL_IB_SL", "1")), want: []string{`slurm/7 ok "1" want "0 to 15" by guide`}},
		{name: "discarded", node: both(infiniband, virtualLanes(15), setEnv("NCCL_IB_SL", "1")), want: []string{
			`slurm/7 differs/info "1" want "a service level with a virtual lane in use" by machine; ` +
				`mlx5_1/1 discards packets of service level 1: virtual lane 15; set: unset NCCL_IB_SL # of the job, or in nccl.conf`,
		}},
		{name: "discarded by a port that the job does not use", node: both(infiniband, virtualLanes(15), setEnv("NCCL_IB_SL", "1"), setEnv("NCCL_IB_HCA", "=mlx5_0")), want: []string{
			`slurm/7 ok "1" want "0 to 15" by guide`,
		}},
	})
}

// virtualLanes returns a change that sets the virtual lanes of both compute ports: mlx5_1 has a virtual lane for
// service level 1.
func virtualLanes(lane uint8) func(*snapshot.Node) {
	return func(n *snapshot.Node) {
		count := uint64(4)
		for i, vls := range [][]uint8{{0, 1, 2, 3}, {0, lane, 2, 3}} {
			n.InfiniBand.Devices[i].Ports[0].Settings = &snapshot.IBPortSettings{DataVLs: &count, VLs: vls}
		}
	}
}

func TestJobTopology(t *testing.T) {
	const (
		want   = ` want "a topology of this host" by machine`
		remedy = `; set: unset NCCL_TOPO_FILE # of the job, or create the file with NCCL_TOPO_DUMP_FILE on this model of host`
		whole  = `<system><cpu numaid="0"><pci busid="0000:10:00.0"></pci><pci busid="0000:11:00.0"></pci><pci busid="0000:20:00.0"></pci><pci busid="0000:21:00.0"></pci></cpu></system>`
		other  = `<system><cpu numaid="0"><pci busid="0000:10:00.0"></pci><pci busid="0000:11:00.0"></pci></cpu></system>`
	)
	set := setEnv("NCCL_TOPO_FILE", "/opt/t.xml")
	topology := func(text string) func(*snapshot.Node) {
		return func(n *snapshot.Node) { n.GDR.Processes[0].Topology, n.GDR.Processes[1].Topology = text, text }
	}
	far := func(distance, tree string) func(*snapshot.Node) {
		return func(n *snapshot.Node) {
			for i := range n.GDR.Pairs {
				n.GDR.Pairs[i].Distance, n.GDR.Pairs[i].Tree = distance, tree
			}
		}
	}
	checkRows(t, "nccl_topo_file", jobNode, []rowCase{
		{name: "not set"},
		{name: "far where the PCI tree has it near", node: both(set, both(topology(whole), far("PHB", "PXB"))), want: []string{
			`slurm/7 differs/warning/RDMAGPUDirectUnavailable/job_settings "/opt/t.xml" want "not set" by machine; ` +
				`GPU 0 and mlx5_0 are at PHB in the file, at PXB in the PCI tree; ` +
				`GPU 1 and mlx5_0 are at PHB in the file, at PXB in the PCI tree` + remedy,
		}},
		{name: "far as in the PCI tree", node: both(set, both(topology(whole), far("SYS", "PHB"))), want: []string{`slurm/7 ok "/opt/t.xml"` + want}},
		{name: "nearer than in the PCI tree", node: both(set, both(topology(whole), far("PIX", "PHB"))), want: []string{`slurm/7 ok "/opt/t.xml"` + want}},
		{name: "no PCI tree: a virtual machine", node: both(set, both(topology(whole), far("PHB", ""))), want: []string{`slurm/7 ok "/opt/t.xml"` + want}},
		{name: "as wanted", node: both(set, topology(whole)), want: []string{`slurm/7 ok "/opt/t.xml"` + want}},
		{name: "missing", node: set, want: []string{`slurm/7 differs/info "/opt/t.xml"` + want + `; /opt/t.xml does not exist as the job sees it` + remedy}},
		{name: "of another machine", node: both(set, topology(other)), want: []string{
			`slurm/7 differs/info "/opt/t.xml"` + want +
				`; not in the file: GPU 1 (0000:20:00.0), mlx5_1 (0000:21:00.0)` + remedy,
		}},
		{name: "no topology", node: both(set, topology("<a/>")), want: []string{`slurm/7 differs/info "/opt/t.xml"` + want + `; /opt/t.xml is not a topology file of NCCL` + remedy}},
		{name: "unreadable", node: both(set, func(n *snapshot.Node) { n.GDR.Processes = n.GDR.Processes[:1]; n.GDR.Processes[0].Conf = nil }), want: []string{
			`slurm/7 unknown ""` + want + `; the files of the job are not readable`,
		}},
		{name: "site", node: set, site: "/opt/*", want: []string{`slurm/7 ok "/opt/t.xml" want "/opt/*" by site; /opt/t.xml does not exist as the job sees it`}},
	})
}
