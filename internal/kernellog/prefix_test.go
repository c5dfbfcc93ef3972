package kernellog

import (
	"fmt"
	"strings"
	"testing"
)

// TestPrefixes: a message is recognised with its object, whatever dmesg, journald or syslog put before it.
func TestPrefixes(t *testing.T) {
	for _, before := range []string{
		"",
		"<3>",
		"[   12.345678] ",
		"[12345.678901][  T123] ",
		"[12345.678901] [   T1234] ",
		"[12345.678901][    C7] ",
		"<4>[12345.678901][    C7] ",
		"[12345.678901 <    0.000012>] ",
		"[<    0.000012>] ",
		"[  +0.000123] ",
		"[Jan 2 03:04] ",
		"[Tue Jan  2 03:04:05 2026] ",
		"2026-01-02T03:04:05,123456+00:00 ",
		"kern  :warn  : [   12.345678] ",
		"kern  :err   : [Tue Jan  2 03:04:05 2026] ",
		"kern  :warn  : 2026-01-02T03:04:05,123456+00:00 ",
		"Jan 02 03:04:05 gpu-17 kernel: ",
		"Jan 02 03:04:05.123456 gpu-17 kernel: ",
		"2026-01-02T03:04:05+0000 gpu-17 kernel: ",
		"2026-01-02T03:04:05.123456+00:00 gpu-17 kernel: [12345.678901] ",
		"Tue 2026-01-02 03:04:05 UTC gpu-17 kernel: ",
		"[ 1234.567890] gpu-17 kernel: ",
		"1767323045.123456 gpu-17 kernel: ",
		"<3>1 2026-01-02T03:04:05.123456Z gpu-17 kernel - - - [12345.678901] ",
	} {
		for _, c := range []struct {
			line string
			want Event
		}{
			{
				"mlx5_core 0000:5e:00.0: poll_health:825:(pid 0): device's health compromised - reached miss count",
				Event{Kind: FirmwareStopped, Driver: "mlx5_core", PCIAddress: "0000:5e:00.0"},
			},
			{"infiniband mlx5_3: Couldn't open port 1", Event{Kind: ProbeFailed, Device: "mlx5_3", Detail: "port 1"}},
			{"{1}[Hardware Error]:   device_id: 0000:5d:01.0", Event{Kind: PCIeFirmware, Driver: Firmware, PCIAddress: "0000:5d:01.0"}},
			{
				"nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -2)",
				Event{Kind: ModuleRefused, Driver: "nvidia_peermem", Detail: "ib_register_peer_memory_client"},
			},
		} {
			if e, ok := Parse(before + c.line); !ok || e != c.want {
				t.Errorf("%s%s\n got %+v\nwant %+v", before, c.line, e, c.want)
			}
		}
	}
}

// TestOrigin: prefixes of the kernel and of drivers, and what looks like one and is none.
func TestOrigin(t *testing.T) {
	for line, want := range map[string]string{
		"bnxt_en 0000:19:00.0 p1p1: text":                              "bnxt_en 0000:19:00.0 p1p1  text",
		"bnxt_en 0000:19:00.0 bnxt_re0: text":                          "bnxt_en 0000:19:00.0  bnxt_re0 text",
		"ice 0000:b1:00.0 rocep177s0f0: text: more":                    "ice 0000:b1:00.0  rocep177s0f0 text: more",
		"mlx5_core 0000:4d:00.0 eth0 (unregistering): text":            "mlx5_core 0000:4d:00.0 eth0  text",
		"mlx5_core 0000:4d:00.0 (unnamed net_device): text":            "mlx5_core 0000:4d:00.0   text",
		"mlx5_ib.rdma mlx5_core.rdma.3: text":                          "mlx5_ib    text",
		"infiniband rdmap16s27: text":                                  "   rdmap16s27 text",
		"ibdev bnxt_re1: text":                                         "   bnxt_re1 text",
		"infiniband mlx5_3: dump_cqe:277:(pid 0): text":                "   mlx5_3 text",
		"mlx5_3:dump_cqe:262:(pid 0): text":                            "   mlx5_3 text",
		"mlx5_warn:mlx5_1:dump_cqe:257:(pid 0): text":                  "   mlx5_1 text",
		"mlx5_core 0000:03:00.0: 0000:03:00.0:mlx5_load:4:(pid 6): t":  "mlx5_core 0000:03:00.0   t",
		"<mlx4_ib> mlx4_ib_add: text":                                  "    <mlx4_ib> mlx4_ib_add: text",
		"mlx4_en: eth2: text":                                          "mlx4_en  eth2  text",
		"mlx4_en: 0000:04:00.0: Port 1: text":                          "mlx4_en 0000:04:00.0   text",
		"AMD-Vi: text":                                                 "    text",
		"iommu ivhd0: AMD-Vi: text":                                    "    text",
		"DMAR-IR: text":                                                "    text",
		"pcieport 0000:5d:01.0: AER: text":                             "pcieport 0000:5d:01.0   text",
		"pcieport 0000:5d:01.0: DPC: text":                             "pcieport 0000:5d:01.0   DPC: text",
		"{12}[Hardware Error]:  text":                                  "    [Hardware Error]: text",
		"[Hardware Error]: text":                                       "    [Hardware Error]: text",
		"systemd[1]: text":                                             "    systemd[1]: text",
		"audit: type=1400 audit(1.2:3): apparmor=\"STATUS\" kernel: x": "    audit: type=1400 audit(1.2:3): apparmor=\"STATUS\" kernel: x",
	} {
		var e Event
		text := e.origin(line)
		if got := fmt.Sprintf("%s %s %s %s %s", e.Driver, e.PCIAddress, e.Netdev, e.Device, text); got != want {
			t.Errorf("%s\n got %q\nwant %q", line, got, want)
		}
	}
}

// TestUnknownDriver: patterns of a driver match a line that names an RDMA device and no driver, and no line of another.
func TestUnknownDriver(t *testing.T) {
	const text = "WC error: 4, Message: local protection error"
	for line, want := range map[string]bool{
		"infiniband mlx5_0: " + text:             true,
		"infiniband ibp94s0: " + text:            true,
		"mlx5_core 0000:5e:00.0 mlx5_0: " + text: true,
		"bnxt_en 0000:5e:00.0: " + text:          false,
		"nvme 0000:5e:00.0: " + text:             false,
		text:                                     false,
	} {
		if _, ok := Parse(line); ok != want {
			t.Errorf("%s: %t", line, ok)
		}
	}
}

// TestPatternsHaveLines: each pattern of these tables is the first that a line of lines.txt matches.
func TestPatternsHaveLines(t *testing.T) {
	matched := map[*Pattern]bool{}
	for _, line := range lines(t, "lines.txt") {
		var e Event
		text := e.origin(line[strings.LastIndex(line, "\t")+1:])
		for _, p := range e.candidates(text) {
			if p.form().MatchString(text) {
				matched[p.Pattern] = true
				break
			}
		}
	}
	for i := range Patterns {
		p := &Patterns[i]
		for _, table := range [][]Pattern{mellanoxPatterns, corePatterns, pciePatterns, gpuPatterns} {
			for j := range table {
				if table[j].Source == p.Source && table[j].form == p.form && !matched[p] {
					t.Errorf("%s: no line of lines.txt: %s", p.Kind, p.form)
				}
			}
		}
	}
}
