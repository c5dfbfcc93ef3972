package setup

import (
	"slices"
	"strings"
	"testing"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

func TestTraffic(t *testing.T) {
	with := func(n int, change func(*snapshot.Node)) func() *snapshot.Node {
		return func() *snapshot.Node {
			node := rails(n)
			change(node)
			return node
		}
	}
	lossy := func(n *snapshot.Node) {
		for i := range n.QoS.Netdevs {
			n.QoS.Netdevs[i].PFC.Enabled[3] = false
		}
	}
	inTree := func(n *snapshot.Node) { n.Modules.Modules[0].Flavour = "in-tree" }
	run(t, []settingCase{
		{"as wanted", "job_traffic_class", with(2, func(n *snapshot.Node) { startJob(n, "slurm/7", map[string]string{"NCCL_IB_TC": "106"}, 0, 1) }), "", `slurm/7 ok "106" want "106" machine`},
		{"another DSCP of the priority", "job_traffic_class", with(2, func(n *snapshot.Node) { startJob(n, "slurm/7", map[string]string{"NCCL_IB_TC": "0x60"}, 0, 1) }), "", `slurm/7 ok "96" want "96" machine`},
		{"two processes are one job", "job_traffic_class", with(2, func(n *snapshot.Node) {
			startJob(n, "slurm/7", map[string]string{"NCCL_IB_TC": "0"}, 0, 1)
			startJob(n, "slurm/7", map[string]string{"NCCL_IB_TC": "0"}, 0, 1)
		}), "", `slurm/7 differs "0" want "106" machine RDMATrafficOnLossyPriority`},
		{"in nccl.conf", "job_traffic_class", with(2, func(n *snapshot.Node) { startJob(n, "slurm/7", nil, 0, 1).Conf["NCCL_IB_TC"] = "8" }), "", `slurm/7 differs "8" want "106" machine RDMATrafficOnLossyPriority`},
		{"not set: the program may set one", "job_traffic_class", with(2, func(n *snapshot.Node) { startJob(n, "slurm/7", nil, 0, 1) }), "", `slurm/7 differs "0" want "106" machine`},
		{"not set, in a version in which it cannot", "job_traffic_class", with(2, func(n *snapshot.Node) { startJob(n, "slurm/7", nil, 0, 1).NCCL = "2.22.3" }), "", `slurm/7 differs "0" want "106" machine RDMATrafficOnLossyPriority`},
		{"unknown", "job_traffic_class", with(2, func(n *snapshot.Node) { startJob(n, "slurm/7", nil, 0, 1).Conf = nil }), "", `slurm/7 unknown "" want "106" machine`},
		{"UCX", "job_traffic_class", with(2, func(n *snapshot.Node) {
			p := startJob(n, "slurm/7", map[string]string{"UCX_IB_TRAFFIC_CLASS": "32"})
			p.HasNCCL = false
		}), "", `slurm/7 differs "32" want "106" machine RDMATrafficOnLossyPriority`},
		{"UCX, auto", "job_traffic_class", with(2, func(n *snapshot.Node) {
			p := startJob(n, "slurm/7", map[string]string{"UCX_IB_TRAFFIC_CLASS": "auto"})
			p.HasNCCL = false
		}), "", `slurm/7 ok "106" want "106" machine`},
		{"on a lossy site", "job_traffic_class", with(2, func(n *snapshot.Node) { startJob(n, "slurm/7", map[string]string{"NCCL_IB_TC": "0"}, 0, 1); lossy(n) }), "", ""},
		{"on a lossy site that wants one", "job_traffic_class", with(2, func(n *snapshot.Node) { startJob(n, "slurm/7", map[string]string{"NCCL_IB_TC": "0"}, 0, 1); lossy(n) }), "106", `slurm/7 differs "0" want "106" site`},
		{"the site wants another", "job_traffic_class", with(2, func(n *snapshot.Node) { startJob(n, "slurm/7", map[string]string{"NCCL_IB_TC": "106"}, 0, 1) }), "104", `slurm/7 differs "106" want "104" site`},
		{"overridden by the port", "job_traffic_class", with(2, func(n *snapshot.Node) {
			startJob(n, "slurm/7", map[string]string{"NCCL_IB_TC": "0"}, 0, 1)
			n.QoS.Ports[0].TrafficClass, n.QoS.Ports[1].TrafficClass = pointer(uint64(106)), pointer(uint64(106))
		}), "", ""},
		{"a port for storage beside those for jobs", "job_traffic_class", with(3, func(n *snapshot.Node) {
			for i := range 3 { // lossless is the port for storage
				n.QoS.Ports[i].PinnedRoCE, n.GDR.NICs[i].Role = []string{"lossy", "lossy", "lossless"}[i],
					[]string{"compute", "compute", "other"}[i]
			}
			startJob(n, "slurm/7", map[string]string{"NCCL_IB_TC": "0"}, 0, 1, 2)
		}), "", ""},
		{"one node", "job_traffic_class", with(2, func(n *snapshot.Node) { startJob(n, "slurm/7", map[string]string{"SLURM_JOB_NUM_NODES": "1"}, 0, 1) }), "", ""},
		{"one node by its launcher, in an allocation of several", "job_traffic_class", with(2, func(n *snapshot.Node) {
			startJob(n, "slurm/7",
				map[string]string{"SLURM_JOB_NUM_NODES": "4", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "8"}, 0, 1)
		}), "", ""},
		{"by sockets", "job_traffic_class", with(2, func(n *snapshot.Node) { startJob(n, "slurm/7", map[string]string{"NCCL_IB_DISABLE": "1"}, 0, 1) }), "", `slurm/7 differs "0" want "106" machine`},
		{"an InfiniBand host", "job_traffic_class", with(2, func(n *snapshot.Node) {
			startJob(n, "slurm/7", nil, 0, 1)
			portOf(n, 0).LinkLayer, portOf(n, 1).LinkLayer = "InfiniBand", "InfiniBand"
		}), "", ""},
		{"trust pcp: by service level, which a VLAN may carry", "job_traffic_class", with(2, func(n *snapshot.Node) {
			startJob(n, "slurm/7", map[string]string{"NCCL_IB_TC": "106"}, 0, 1)
			n.QoS.Netdevs[0].Trust, n.QoS.Netdevs[1].Trust = "pcp", "pcp"
		}), "", `slurm/7 ok "106" want "106" machine`},

		{"as wanted", "default_traffic_class", with(2, func(n *snapshot.Node) {
			n.QoS.Ports[0].TrafficClass, n.QoS.Ports[1].TrafficClass = pointer(uint64(106)), pointer(uint64(106))
		}), "", `
			mlx5_0/1 ok "106" want "106" machine
			mlx5_1/1 ok "106" want "106" machine`},
		{"leads to another priority", "default_traffic_class", with(2, func(n *snapshot.Node) {
			n.QoS.Ports[0].TrafficClass, n.QoS.Ports[1].TrafficClass = pointer(uint64(106)), pointer(uint64(32))
		}), "", `
			mlx5_0/1 ok "106" want "106" guide
			mlx5_1/1 differs "32" want "106" machine RDMATrafficOnLossyPriority`},
		{"not set on one", "default_traffic_class", with(3, func(n *snapshot.Node) {
			n.QoS.Ports[0].TrafficClass, n.QoS.Ports[1].TrafficClass = pointer(uint64(106)), pointer(uint64(106))
		}), "", `
			mlx5_0/1 ok "106" want "106" machine
			mlx5_1/1 ok "106" want "106" machine
			mlx5_2/1 differs "not set" want "106" machine`},
		{"not set, the jobs set it", "default_traffic_class", with(2, func(n *snapshot.Node) { startJob(n, "slurm/7", map[string]string{"NCCL_IB_TC": "106"}, 0, 1) }), "", `
			mlx5_0/1 ok "not set" want "not set" guide
			mlx5_1/1 ok "not set" want "not set" guide`},
		{"in-tree: does not exist", "default_traffic_class", with(2, inTree), "", ""},
		{"in-tree, of the connection manager", "default_traffic_class", with(2, func(n *snapshot.Node) {
			inTree(n)
			n.Setup.Files["sys/kernel/config/rdma_cm/mlx5_0/ports/1/default_roce_tos"] = hostdata.SetupFile{Text: "0"}
		}), "", `mlx5_0/1 differs "0" want "106" machine`},
		{"lossy, as the sibling ports", "default_traffic_class", with(3, func(n *snapshot.Node) {
			lossy(n)
			n.QoS.Ports[0].TrafficClass, n.QoS.Ports[1].TrafficClass = pointer(uint64(96)), pointer(uint64(96))
		}), "", `
			mlx5_0/1 ok "96" want "96" machine
			mlx5_1/1 ok "96" want "96" machine
			mlx5_2/1 differs "not set" want "96" machine`},
		{"lossy, not set", "default_traffic_class", with(3, lossy), "", ""},
		{"the site wants it", "default_traffic_class", with(1, func(n *snapshot.Node) { n.QoS.Ports[0].TrafficClass = pointer(uint64(96)) }), "106", `mlx5_0/1 differs "96" want "106" site`},

		{"as wanted", "trust_mode", with(2, func(*snapshot.Node) {}), "", `
			eth0 ok "dscp" want "dscp" machine
			eth1 ok "dscp" want "dscp" machine`},
		{"one has pcp", "trust_mode", with(3, func(n *snapshot.Node) { n.QoS.Netdevs[1].Trust = "pcp" }), "", `
			eth0 ok "dscp" want "dscp" machine
			eth1 differs "pcp" want "dscp" machine
			eth2 ok "dscp" want "dscp" machine`},
		{"all have pcp", "trust_mode", with(2, func(n *snapshot.Node) { n.QoS.Netdevs[0].Trust, n.QoS.Netdevs[1].Trust = "pcp", "pcp" }), "", `
			eth0 differs "pcp" want "dscp" guide
			eth1 differs "pcp" want "dscp" guide`},
		{"unknown", "trust_mode", with(2, func(n *snapshot.Node) { n.QoS.Netdevs[0].Trust = "" }), "", `
			eth0 unknown "" want "dscp" guide
			eth1 ok "dscp" want "dscp" guide`},
		{"lossy and alone", "trust_mode", with(1, lossy), "", ""},
		{"the site wants pcp", "trust_mode", with(1, lossy), "pcp", `eth0 differs "dscp" want "pcp" site`},

		{"as wanted", "dscp_map", with(2, func(*snapshot.Node) {}), "", `
			eth0 ok "26:3" want "26:3" machine
			eth1 ok "26:3" want "26:3" machine`},
		{"the class of the port is wrong, not the map", "dscp_map", with(2, func(n *snapshot.Node) {
			n.QoS.Ports[0].TrafficClass = pointer(uint64(136))
			startJob(n, "slurm/7", map[string]string{"NCCL_IB_TC": "160"}, 1) // a setting of the job
		}), "", `
			eth0 ok "26:3" want "26:3" machine
			eth1 ok "26:3" want "26:3" machine`},
		{"no table: the default of mlx5", "dscp_map", with(2, func(n *snapshot.Node) { n.QoS.Netdevs[0].DSCPs, n.QoS.Netdevs[1].DSCPs = nil, nil }), "", `
			eth0 ok "26:3" want "26:3" machine
			eth1 ok "26:3" want "26:3" machine`},
		{"no table of another driver", "dscp_map", with(2, func(n *snapshot.Node) {
			n.QoS.Netdevs[0].DSCPs, n.InfiniBand.Devices[0].Driver = nil, "bnxt_en"
		}), "", `
			eth0 unknown "" want "26:3" machine
			eth1 ok "26:3" want "26:3" machine`},
		{"lossy", "dscp_map", with(2, lossy), "", ""},
		{"the site wants another", "dscp_map", with(1, func(n *snapshot.Node) { n.QoS.Ports[0].PinnedRoCE = "lossless" }), "24:5", `eth0 differs "24:3" want "24:5" site`},

		{"as wanted", "pfc_on_rdma_priority", with(2, func(*snapshot.Node) {}), "", `
			eth0 ok "3" want "3" machine
			eth1 ok "3" want "3" machine`},
		{"off on one of three", "pfc_on_rdma_priority", with(3, func(n *snapshot.Node) { n.QoS.Netdevs[1].PFC.Enabled[3] = false }), "", `
			eth0 ok "3" want "3" machine
			eth1 differs "none" want "3" machine
			eth2 ok "3" want "3" machine`},
		{"off on one that a job uses", "pfc_on_rdma_priority", with(3, func(n *snapshot.Node) {
			n.QoS.Netdevs[1].PFC.Enabled[3] = false
			startJob(n, "slurm/7", map[string]string{"NCCL_IB_TC": "106"}, 0, 1, 2)
		}), "", `
			eth0 ok "3" want "3" machine
			eth1 differs "none" want "3" machine RDMATrafficOnLossyPriority
			eth2 ok "3" want "3" machine`},
		{"the job is wrong, not the port", "pfc_on_rdma_priority", with(2, func(n *snapshot.Node) { startJob(n, "slurm/7", map[string]string{"NCCL_IB_TC": "0"}, 0, 1) }), "", `
			eth0 ok "3" want "3" machine
			eth1 ok "3" want "3" machine`},
		{"pinned, none has it", "pfc_on_rdma_priority", with(2, func(n *snapshot.Node) { lossy(n); n.QoS.Ports[0].PinnedRoCE = "lossless" }), "", `eth0 differs "none" want "3" guide`},
		{"pinned, and the class of the port says which", "pfc_on_rdma_priority", with(1, func(n *snapshot.Node) {
			lossy(n)
			n.QoS.Ports[0].PinnedRoCE, n.QoS.Ports[0].TrafficClass = "lossless", pointer(uint64(160))
		}), "", `eth0 differs "none" want "5" machine RDMATrafficOnLossyPriority`},
		{"pinned as lossy", "pfc_on_rdma_priority", with(2, func(n *snapshot.Node) { n.QoS.Ports[0].PinnedRoCE, n.QoS.Ports[1].PinnedRoCE = "lossy", "lossy" }), "", ""},
		{"unknown", "pfc_on_rdma_priority", with(3, func(n *snapshot.Node) { n.QoS.Netdevs[1].PFC = nil }), "", `
			eth0 ok "3" want "3" machine
			eth1 unknown "" want "3" machine
			eth2 ok "3" want "3" machine`},
		{"the site wants none", "pfc_on_rdma_priority", with(1, func(*snapshot.Node) {}), "none", `eth0 differs "3" want "none" site`},

		{"as wanted", "ecn_on_rdma_priority", with(2, func(*snapshot.Node) {}), "", `
			eth0 ok "on" want "on" machine
			eth1 ok "on" want "on" machine`},
		{"off on one", "ecn_on_rdma_priority", with(2, func(n *snapshot.Node) { n.QoS.Netdevs[1].Reaction[3] = pointer(uint64(0)) }), "", `
			eth0 ok "on" want "on" machine
			eth1 differs "reaction point off" want "on" machine RDMAPortMisconfigured/congestion_notification`},
		{"off on another priority", "ecn_on_rdma_priority", with(2, func(n *snapshot.Node) { n.QoS.Netdevs[1].Reaction[4] = pointer(uint64(0)) }), "", `
			eth0 ok "on" want "on" machine
			eth1 ok "on" want "on" machine`},
		{"unknown", "ecn_on_rdma_priority", with(2, func(n *snapshot.Node) { inTree(n); n.QoS.Ports[1].PinnedCongestionControl = "off" }), "", `eth0 unknown "" want "on" machine`},
		{"lossy, with the class of the port", "ecn_on_rdma_priority", with(1, func(n *snapshot.Node) {
			lossy(n)
			n.QoS.Ports[0].TrafficClass, n.QoS.Netdevs[0].Notification[5] = pointer(uint64(160)), pointer(uint64(0))
		}), "", `eth0 differs "notification point off" want "on" guide`},
		{"lossy, class unknown", "ecn_on_rdma_priority", with(1, lossy), "", ""},
		{"the site wants it off", "ecn_on_rdma_priority", with(2, func(n *snapshot.Node) { n.QoS.Ports[1].PinnedCongestionControl = "off" }), "off", `eth0 differs "on" want "off" site`},

		{"as wanted", "cnp_priority_apart", with(2, func(n *snapshot.Node) { n.QoS.Ports[1].PinnedCongestionControl = "zerotouch_rtt" }), "", `eth0 ok "6" want "other than 3" guide`},
		{"the same", "cnp_priority_apart", with(2, func(n *snapshot.Node) {
			n.QoS.Netdevs[0].CNPDSCP, n.QoS.Netdevs[1].CNPDSCP = pointer(uint64(24)), nil
		}), "", `
			eth0 differs "3" want "other than 3" guide
			eth1 ok "6" want "other than 3" guide`},
		{"in-tree", "cnp_priority_apart", with(2, func(n *snapshot.Node) { n.QoS.Netdevs[0].CNPPriority, n.QoS.Netdevs[1].CNPPriority = nil, nil }), "", ""},
		{"the site wants 7", "cnp_priority_apart", with(2, func(n *snapshot.Node) { n.QoS.Netdevs[1].CNPPriority = nil }), "7", `eth0 differs "6" want "7" site`},

		{"as wanted", "ets_class_of_rdma", with(2, func(n *snapshot.Node) { n.QoS.Netdevs[1].Classes = nil }), "", `eth0 ok "class 3, ets 12%" want "not the class of priority 0, with bandwidth" guide`},
		{
			"one class for all", "ets_class_of_rdma", with(2, func(n *snapshot.Node) {
				n.QoS.Netdevs[0].Classes.OfPrio = [8]uint64{}
				n.QoS.Netdevs[1].Classes = nil
			}), "",
			`eth0 differs "class 0, ets 12%" want "not the class of priority 0, with bandwidth" guide`,
		},
		{
			"no bandwidth", "ets_class_of_rdma",
			with(2, func(n *snapshot.Node) { n.QoS.Netdevs[0].Classes.Bandwidth[3] = 0; n.QoS.Netdevs[1].Classes = nil }), "",
			`eth0 differs "class 3, ets 0%" want "not the class of priority 0, with bandwidth" guide`,
		},
		{"strict has no share", "ets_class_of_rdma", with(2, func(n *snapshot.Node) {
			n.QoS.Netdevs[0].Classes.Algorithm[3], n.QoS.Netdevs[0].Classes.Bandwidth[3], n.QoS.Netdevs[1].Classes = 0, 0, nil
		}), "", `eth0 ok "class 3, strict" want "not the class of priority 0, with bandwidth" guide`},
		{"lossy", "ets_class_of_rdma", with(2, lossy), "", ""},
		{"the site wants class 5", "ets_class_of_rdma", with(2, func(n *snapshot.Node) { n.QoS.Netdevs[1].Classes = nil }), "class 5*", `eth0 differs "class 3, ets 12%" want "class 5*" site`},
	})
}

// TestOneCause: exactly the setting that is the cause differs, and its remedy names what is wanted of it.
func TestOneCause(t *testing.T) {
	class := func(c uint64, ports ...int) func(*snapshot.Node) {
		return func(n *snapshot.Node) {
			for _, i := range ports {
				n.QoS.Ports[i].TrafficClass = &c
			}
		}
	}
	pfc := func(i int, on ...int) func(*snapshot.Node) {
		return func(n *snapshot.Node) {
			n.QoS.Netdevs[i].PFC.Enabled = [snapshot.Priorities]bool{}
			for _, p := range on {
				n.QoS.Netdevs[i].PFC.Enabled[p] = true
			}
		}
	}
	moved := func(i int) func(*snapshot.Node) {
		return func(n *snapshot.Node) {
			d := n.QoS.Netdevs[i].DSCPs
			d[3], d[4] = slices.DeleteFunc(d[3], func(x uint8) bool { return x == 26 }), append(d[4], 26)
		}
	}
	pinned := func(n *snapshot.Node) {
		for i := range n.QoS.Ports {
			n.QoS.Ports[i].PinnedRoCE = "lossless"
		}
	}
	job := func(class string) func(*snapshot.Node) {
		return func(n *snapshot.Node) { startJob(n, "slurm/7", map[string]string{"NCCL_IB_TC": class}, 0, 1, 2) }
	}
	inTree := func(n *snapshot.Node) { n.Modules.Modules[0].Flavour = "in-tree" }
	pcp := func(n *snapshot.Node) { n.QoS.Netdevs[1].Trust = "pcp" }
	for _, c := range []struct {
		name   string
		ports  int
		change func(*snapshot.Node)
		want   string
	}{
		{"as wanted", 3, class(106, 0, 1, 2), ""},
		{"PFC off", 3, both(class(106, 0, 1, 2), pfc(1)), "dcb pfc set dev eth1 prio-pfc all:off 3:on"},
		{"PFC on another", 3, both(class(106, 0, 1, 2), pfc(1, 4)), "dcb pfc set dev eth1 prio-pfc all:off 3:on"},
		{"PFC on two", 3, both(class(106, 0, 1, 2), pfc(1, 3, 4)), "dcb pfc set dev eth1 prio-pfc all:off 3:on"},
		{"map", 3, both(class(106, 0, 1, 2), moved(1)), "dcb app replace dev eth1 dscp-prio 26:3"},
		{"trust", 3, both(class(106, 0, 1, 2), pcp), "mlnx_qos -i eth1 --trust=dscp"},
		{"class", 3, both(class(106, 0, 1, 2), class(130, 1)), "echo 106 > /sys/class/infiniband/mlx5_1/tc/1/traffic_class"},
		{"class of one is not set", 3, class(106, 0, 2), "echo 106 > /sys/class/infiniband/mlx5_1/tc/1/traffic_class"},
		{"alone, PFC on another", 1, both(class(106, 0), pfc(0, 4), pinned), "dcb pfc set dev eth0 prio-pfc all:off 3:on # or, if the switch has PFC on 4: echo 130 > /sys/class/infiniband/mlx5_0/tc/1/traffic_class"},
		{"alone, PFC off", 1, both(class(106, 0), pfc(0), pinned), "dcb pfc set dev eth0 prio-pfc all:off 3:on"},
		{"alone, class", 1, both(class(130, 0), pinned), "echo 106 > /sys/class/infiniband/mlx5_0/tc/1/traffic_class # or map the DSCP of the class: dcb app replace dev eth0 dscp-prio 32:3"},
		{"alone, map", 1, both(class(106, 0), moved(0), pinned), "dcb app replace dev eth0 dscp-prio 26:3"},
		{"job", 3, both(inTree, job("130")), "export NCCL_IB_TC=106 # of the job, or in nccl.conf"},
		{"PFC off under a job", 3, both(inTree, job("106"), pfc(1)), "dcb pfc set dev eth1 prio-pfc all:off 3:on"},
		{"PFC on another under a job", 3, both(inTree, job("106"), pfc(1, 4)), "dcb pfc set dev eth1 prio-pfc all:off 3:on"},
		{"map, and a job of another DSCP", 3, both(inTree, job("96"), moved(1)), "dcb app replace dev eth1 dscp-prio 26:3"},
		{"map under a job", 3, both(inTree, job("106"), moved(1)), "dcb app replace dev eth1 dscp-prio 26:3"},
		{"trust under a job, in-tree", 3, both(inTree, job("106"), pcp), "dcb app replace dev eth1 dscp-prio 26:3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := rails(c.ports)
			c.change(n)
			var got []string
			for _, r := range Evaluate(n, nil) {
				if r.Domain == string(Traffic) && r.State == hostdata.SetupDiffers {
					got = append(got, r.Remedy)
				}
			}
			if strings.Join(got, "\n") != c.want {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), c.want)
			}
		})
	}
}

// TestChain: the evidence of a class names each step of the way of its packets.
func TestChain(t *testing.T) {
	n := rails(4)
	startJob(n, "slurm/7", map[string]string{"NCCL_IB_TC": "0"}, 0, 1, 2)
	var got []string
	for _, r := range Evaluate(n, nil) {
		if r.Setting == "job_traffic_class" {
			got = append(got, r.Evidence, r.Remedy)
		}
	}
	if want := []string{
		"DSCP 0 has priority 0 on eth0; PFC is enabled on 3; the same on 2 other ports",
		"export NCCL_IB_TC=106 # of the job, or in nccl.conf",
	}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestIntendedLossless is the definition of the rule: more than half of the ports of a role, at least two.
func TestIntendedLossless(t *testing.T) {
	for pattern, want := range map[string]bool{
		"x": false, "xx": true, "x-": false, "xx-": true, "xx--": false, "xxx--": true, "--": false,
	} {
		n := rails(len(pattern))
		for i, c := range pattern {
			n.QoS.Netdevs[i].PFC.Enabled[3] = c == 'x'
		}
		m := newMachine(n, nil)
		if len(m.roces()) != len(pattern) {
			t.Errorf("%s: %d ports", pattern, len(m.roces()))
		}
		for _, r := range m.roces() {
			if r.lossless != want {
				t.Errorf("%s: %s is %v", pattern, r.Name, r.lossless)
			}
		}
	}
	n := rails(2)
	n.InfiniBand.Devices[1].Ports[0].Role = "other"
	if m := newMachine(n, nil); m.intendedLossless()["compute"] {
		t.Error("one port of a role is enough")
	}
}
