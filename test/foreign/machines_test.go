package foreign_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"rdma_exporter/test/machines"
)

// hostileMachine is a recorded machine that is made hostile.
type hostileMachine struct {
	base  string
	parts map[string]string // more or other entries: their text by path
	names []string          // of devices, interfaces and directories that are renamed
	only  []string          // command lines; nil: all, and all that is served
	whole string            // a list of answers that has no more elements (more); empty: none
}

func hostileMachines(t *testing.T) []hostileMachine {
	process := from(t, "job-port-down", "processes/90211")
	withoutJob := strings.NewReplacer("job: slurm/48121\n", "", "step: 0\n", "", "gpus: 0\n", "")
	link := from(t, "far-end-errors", "subnet/mlx5_1/1/link")
	description := "far_description: MF0;ib-leaf-2:MQM9700/U1\n"
	return []hostileMachine{
		{"job-port-down", map[string]string{
			"ebpf/trace": from(t, "gdr-ebpf-staging", "ebpf/trace") + "missing: host\n" +
				"events: device=mlx5_0 kind=qp_fatal count=1\nevent: age=12.5 device=mlx5_0 kind=qp_fatal pid=90211\n",
			"ebpf/pairs": "age: 3600\nlost: 0\n" +
				"pair_1: age=60 kind=connected device=mlx5_0 port=1 qpn=300 pid=90211 command=python3 peer_qpn=400 " +
				"peer=0000:0000:0000:0000:0000:ffff:0a46:0102 roce=1\n" +
				"pair_2: age=50 kind=event device=mlx5_0 port=1 qpn=300 event=qp_fatal\n" +
				"pair_3: age=40 kind=refused device=mlx5_0 port=1 qpn=301 pid=90211 command=python3 peer_qpn=455 " +
				"peer=0000:0000:0000:0000:0000:ffff:0a46:0111 roce=1 errno=110\n",
			"launchers": from(t, "memlock-of-containers-ok", "launchers") + "pbs_mom: !permission\n",
			"kernel/log": "lost: 0\ndropped: 0\nskipped: 0\n" +
				"1501: 3481100000000 command_timeout mlx5_core 0000:18:00.0 - - CREATE_MKEY\n",
			"processes/90211": process + "libraries: nccl nvshmem\ndmabuf_nv_dmabuf: buffers=8 bytes=536870912\n",
			"processes/90212": process + "settings: read\nconf_NCCL_SOCKET_IFNAME: eth0\n",
			"processes/90301": withoutJob.Replace(process) + "container: 0123456789ab\n",
			"processes/90302": withoutJob.Replace(process) + "unit: ganesha.service\n",
		}, []string{"mlx5_5", "enp24s0np0"}, nil, ""},
		{"far-end-errors", map[string]string{
			"subnet/mlx5_0/1/fec/49-1": "mode: RS(544,514)\nsync_header_errors: 0\n",
			"subnet/mlx5_1/1/link":     strings.Replace(link, description, "far_description: leaf%20switch\n", 1),
			"subnet/mlx5_2/1/link":     strings.Replace(link, description, "", 1),
			"etc/nccl.conf":            "NCCL_IB_HCA=mlx5\n",
		}, nil, nil, ""},
		{"ofed-not-in-use", nil, []string{"24.10.OFED.24.10.1.1.4"}, []string{"check --setup", "check --setup --json"}, ""},
		// one more device, which is of no pod, contradicts the names of pods
		{"sriov-pods-port-down", nil, nil, []string{"job", "check --json"}, "Processes[].Verbs"},
	}
}

// TestMachines: nothing of hostile machines is obeyed by a terminal, a shell or a browser, whatever shows it, and
// each text is shown somewhere.
func TestMachines(t *testing.T) {
	m := newMarks()
	for _, c := range hostileMachines(t) {
		t.Run(c.base, func(t *testing.T) {
			m.whole = c.whole
			a := hostile(t, m, c.base, c.parts, c.names)
			file := machines.Written(t, a)
			m.play(t, file, c.only)
			if c.only == nil {
				m.served(t, file)
			}
		})
	}
	for _, name := range slices.Sorted(maps.Keys(m.number)) {
		if reason := shownNowhere[name]; m.seen[name] == (reason != "") {
			t.Errorf("%s: shown %v, %q", name, m.seen[name], reason)
		}
	}
	for _, name := range answerTexts() {
		if _, spoiled := m.number[name]; !spoiled && keptFields[name] == "" {
			t.Errorf("%s: no machine has it", name)
		}
	}
}
