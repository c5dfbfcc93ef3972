package setup

import (
	"cmp"
	"fmt"
	"strconv"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

// netDir has an entry for each network interface of the host. flags are IFF_* in hexadecimal; bit 0 is IFF_UP.
const netDir = "sys/class/net"

var jobFiles = []string{ncclConf, netDir + "/", netDir + "/*/flags"}

const (
	ncclManual = "NVIDIA, NCCL: environment variables, "
	jobRead    = " in the environment of the job, NCCL_CONF_FILE or ~/.nccl.conf, /etc/nccl.conf"
)

// jobChecks are settings of NCCL. Only those that are set have rows: the defaults of NCCL are as wanted.
var jobChecks = []Check{
	ncclSetting("NCCL_SOCKET_IFNAME", (*machine).socketInterfaces, Check{
		ID: "nccl_socket_ifname", Name: "interfaces of NCCL for TCP",
		Read:   "; /sys/class/net",
		Wanted: "interfaces that exist and are up; RDMA ports among them have an IP address",
		Why:    "The bootstrap of NCCL uses them: without one the job does not start, or waits for its timeout.",
		Remedy: "export NCCL_SOCKET_IFNAME=INTERFACE # of the job: the management interface",
	}),
	ncclSetting("NCCL_IB_HCA", (*machine).hcas, Check{
		ID: "nccl_ib_hca", Name: "RDMA devices of NCCL",
		Read:   ": names are prefixes, mlx5 and mlx5_1 also of mlx5_bond_0 and mlx5_10; = before the list makes them exact",
		Wanted: "all ACTIVE compute ports, the nearest of each GPU among them, and no others",
		Why:    "Devices that are left out cost throughput. A device of the management or storage network slows down all rings that it is in. A list that names no existing device leaves NCCL with sockets, or ends the job.",
		Remedy: "export NCCL_IB_HCA={wanted} # of the job, or in nccl.conf; = before the list: exact names",
	}),
	{
		ID: "nccl_gdr_level", Domain: Job, Name: "distance limit of GPUDirect RDMA",
		Read:   "NCCL_NET_GDR_LEVEL, and its name before NCCL 2.4, NCCL_IB_GDR_LEVEL" + jobRead,
		Wanted: "not set, or the distance between each GPU and its nearest RDMA device",
		Why:    "Between a GPU and a device beyond the limit NCCL copies the data through host memory. The former name NCCL_IB_GDR_LEVEL has no effect.",
		Remedy: "unset NCCL_NET_GDR_LEVEL NCCL_IB_GDR_LEVEL # of the job, or in nccl.conf",
		Source: ncclManual + "NCCL_NET_GDR_LEVEL", Alert: "RDMAGPUDirectUnavailable/job_settings",
		find: findLevel,
	},
	ncclSetting("NCCL_IB_DISABLE", (*machine).ibDisabled, Check{
		ID: "nccl_ib_disable", Name: "use of RDMA by NCCL",
		Wanted: "0 on hosts with ACTIVE compute ports",
		Why:    "NCCL uses TCP between nodes.",
		Alert:  "RDMAGPUDirectStaging/sockets",
	}),
	ncclSetting("NCCL_IB_GID_INDEX", (*machine).gidIndex, Check{
		ID: "nccl_gid_index", Name: "GID index of NCCL",
		Read:   "; GID tables of the ports that the job uses",
		Wanted: "not set, or an entry of type RoCE v2",
		Why:    "Packets of RoCE v1 are not routed and have no DSCP: connections fail, or miss the lossless class.",
		Remedy: "unset NCCL_IB_GID_INDEX # of the job, or in nccl.conf: NCCL selects a RoCE v2 entry",
		Alert:  "RDMAPortMisconfigured/job_gid",
	}),
	ncclSetting("NCCL_IB_TIMEOUT", within(18, 22), Check{
		ID: "nccl_timeout", Name: "ACK timeout of NCCL",
		Wanted: "18 to 22: 4.096 us * 2^18 is 1 s, 2^22 is 17 s. The default is 20 (18 before NCCL 2.23, 14 before 2.14)",
		Why:    "Smaller values end the job at a link flap or at congestion (NCCL status 12), larger ones detect a lost peer late. 0: wait forever.",
		Source: "; InfiniBand specification, Local ACK Timeout",
	}),
	ncclSetting("NCCL_IB_RETRY_CNT", within(7, 7), Check{
		ID: "nccl_retry_cnt", Name: "transport retries of NCCL",
		Wanted: "7, the default and the maximum",
		Why:    "Fewer retries end the job at a link flap or at congestion (NCCL status 12).",
		Source: "; InfiniBand specification, Retry Count (3 bits)",
	}),
	ncclSetting("NCCL_IB_SL", (*machine).serviceLevel, Check{
		ID: "nccl_sl", Name: "service level of NCCL",
		Wanted: "0 to 15; 0 to 7 on RoCE, where it is a priority; on InfiniBand one with a virtual lane in use, where umad can be opened",
		Why:    "On RoCE it is the priority, of which there are 8: a larger one selects that of other traffic. On InfiniBand packets of a level without a virtual lane are discarded.",
		Source: "; InfiniBand specification, Service Level",
	}),
	ncclSetting("NCCL_IB_ADAPTIVE_ROUTING", (*machine).adaptiveRouting, Check{
		ID: "nccl_adaptive_routing", Name: "use of adaptive routing by NCCL",
		Wanted: "1 on InfiniBand, the default there; on RoCE, where the default is 0, it depends on the fabric",
		Why:    "Messages are not sent in the form that adaptive routing needs: flows collide on uplinks.",
	}),
	ncclSetting("NCCL_IB_QPS_PER_CONNECTION", within(1, 16), Check{
		ID: "nccl_qps", Name: "queue pairs of NCCL for each connection",
		Wanted: "1 to 16. The default is 1; more spread a connection over the paths of a fabric with ECMP",
		Why:    "Many queue pairs exceed the context cache of the device. NCCL accepts 1 to 128.",
		Remedy: "export NCCL_IB_QPS_PER_CONNECTION=4 # of the job, or in nccl.conf",
	}),
	ncclSetting("NCCL_TOPO_FILE", (*machine).topologyFile, Check{
		ID: "nccl_topo_file", Name: "topology file of NCCL",
		Read:   ", and the file as the job sees it",
		Wanted: "a file with the GPUs and RDMA devices of this host, at the distances of the PCI tree",
		Why:    "NCCL ignores a missing file. With wrong distances it selects other devices, or does without GPUDirect RDMA.",
		Remedy: "unset NCCL_TOPO_FILE # of the job, or create the file with NCCL_TOPO_DUMP_FILE on this model of host",
		Alert:  "RDMAGPUDirectUnavailable/job_settings",
	}),
}

// ncclSetting completes a check of a setting of NCCL: Read and Source follow what all have in common.
func ncclSetting(variable string, evaluate func(m *machine, j jobProcess, value string) finding, c Check) Check {
	c.Domain, c.find = Job, settingOf(variable, evaluate)
	c.Read, c.Source = variable+jobRead+c.Read, ncclManual+variable+c.Source
	c.Remedy = cmp.Or(c.Remedy, "unset "+variable+" # of the job, or in nccl.conf")
	return c
}

// settingOf finds the jobs that have a setting, and evaluates each: where nothing is wanted, it has no row.
func settingOf(name string, evaluate func(m *machine, j jobProcess, value string) finding) func(*machine) []finding {
	return func(m *machine) (out []finding) {
		for _, j := range m.jobs {
			value := j.env[name]
			if value == "" || !j.HasNCCL {
				continue
			}
			if f := evaluate(m, j, value); f.want != "" {
				out = append(out, f.ofJob(j, value))
			}
		}
		return joined(out)
	}
}

// ofJob returns the finding of a value of a job.
func (f finding) ofJob(j jobProcess, value string) finding {
	f.object, f.basis = object{name: j.name}, cmp.Or(f.basis, hostdata.SetupGuide)
	if f.unknown == "" {
		f.found = value
	}
	return f
}

// within accepts the integers of a range.
func within(low, high int64) func(*machine, jobProcess, string) finding {
	want := strconv.FormatInt(low, 10)
	if high > low {
		want += " to " + strconv.FormatInt(high, 10)
	}
	return func(_ *machine, _ jobProcess, value string) finding {
		n, err := strconv.ParseInt(value, 0, 64)
		return finding{want: want, meets: err == nil && n >= low && n <= high}
	}
}

// active reports whether a port is ACTIVE, of enum ib_port_state.
func active(p *snapshot.Port) bool { return p.State != nil && *p.State == portActive }

func (m *machine) serviceLevel(j jobProcess, value string) finding {
	high := int64(15)
	if m.layer("Ethernet") {
		high = 7
	}
	v := within(0, high)(m, j, value)
	level := j.env.Integer("NCCL_IB_SL", 0)
	for _, p := range m.infinibands {
		if s := p.Settings; v.meets && s != nil && j.env.AllowsPort(p.Name, p.Number) {
			if lane, ok := laneOf(s, int(level)); !ok {
				v = finding{want: "a service level with a virtual lane in use", basis: hostdata.SetupMachine}
				v.evidence = fmt.Sprintf("%s/%d discards packets of service level %d: virtual lane %d",
					p.Name, p.Number, level, lane)
			}
		}
	}
	return v
}

func (m *machine) adaptiveRouting(j jobProcess, _ string) finding {
	if !m.layer("InfiniBand") {
		return finding{}
	}
	return finding{want: "1", meets: j.env.Integer("NCCL_IB_ADAPTIVE_ROUTING", 1) != 0}
}
