package pci

import (
	"slices"
	"testing"
)

// Paths of an HGX board (role_test.go), and of a switch below another one.
const (
	behind        = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/"
	gpuTwoBelow   = behind + "0000:17:02.0/0000:1a:00.0/0000:1b:00.0/0000:1c:00.0"
	nicTwoBelow   = behind + "0000:17:02.0/0000:1a:00.0/0000:1b:01.0/0000:1d:00.0"
	nicOtherNode  = "sys/devices/pci0000:97/0000:97:01.0/0000:98:00.0"
	secondOnePort = "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:19:00.1"
)

func TestDistances(t *testing.T) {
	for _, c := range []struct {
		name     string
		gpu, nic string
		numa     int // of the NIC; the GPU is on node 0
		c2c      bool
		smi      Distance
		nccl     Distance
		between  []string
	}{
		{"one switch", gpuBehindSwitch, nicBehindSwitch, 0, false, PIX, PIX, []string{"0000:17:00.0", "0000:17:01.0"}},
		{"one switch, coupled", gpuBehindSwitch, nicBehindSwitch, 0, true, PIX, PIX, []string{"0000:17:00.0", "0000:17:01.0"}},
		{"its second function", gpuBehindSwitch, secondOnePort, 0, false, PIX, PIX, []string{"0000:17:00.0", "0000:17:01.0"}},
		{"a sub-function", gpuBehindSwitch, subFunction, 0, false, PIX, PIX, []string{"0000:17:00.0", "0000:17:01.0"}},
		{"both below a second switch", gpuTwoBelow, nicTwoBelow, 0, false, PIX, PIX, []string{"0000:1b:00.0", "0000:1b:01.0"}},
		{"a switch below the NIC's", gpuTwoBelow, nicBehindSwitch, 0, false, PXB, PXB, []string{"0000:17:02.0", "0000:1a:00.0", "0000:1b:00.0", "0000:17:01.0"}},
		{"another root port", gpuBehindSwitch, nicOnOtherPort, 0, false, PHB, PHB, nil},
		{"another host bridge of the node", gpuBehindSwitch, nicOnOtherBridge, 0, false, NODE, PHB, nil},
		{"the same, coupled", gpuBehindSwitch, nicOnOtherBridge, 0, true, NODE, P2C, nil},
		{"another node", gpuBehindSwitch, nicOtherNode, 1, false, SYS, SYS, nil},
		{"another node, coupled", gpuBehindSwitch, nicOtherNode, 1, true, SYS, SYS, nil},
		{"an unknown node is NCCL's first", gpuBehindSwitch, nicOnOtherBridge, -1, false, SYS, PHB, nil},
		{"behind an Intel VMD", gpuBehindSwitch, nicInVMDDomain, 0, false, NODE, PHB, nil},
		{"a flat virtual machine", gpuOfFlatVM, nicOfFlatVM, 0, false, PHB, PHB, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			gpu, nic := PlaceOf(c.gpu, 0), PlaceOf(c.nic, c.numa)
			if got := DistanceOf(gpu, nic); got != c.smi {
				t.Errorf("nvidia-smi says %s, want %s", got, c.smi)
			}
			if got := DistanceOf(nic, gpu); got != c.smi {
				t.Errorf("back: nvidia-smi says %s, want %s", got, c.smi)
			}
			if got := gpu.AsNCCL(nil).DistanceTo(nic.AsNCCL(nil), c.c2c); got != c.nccl {
				t.Errorf("NCCL says %s, want %s", got, c.nccl)
			}
			if got := Between(gpu, nic); !slices.Equal(got, c.between) {
				t.Errorf("between: %q, want %q", got, c.between)
			}
		})
	}
	if PlaceOf(gpuOfFlatVM, 0).Bridged() || !PlaceOf(nicOnOtherPort, 0).Bridged() {
		t.Error("no bridges")
	}
}

func TestBroadcomSwitchesAreOne(t *testing.T) {
	top, sub := "0000:16:00.0", "0000:1a:00.0"
	gen5 := func(level uint64) Bridge { return Bridge{0x1000, 0xc030, 0x1000, level << 12} }
	gen4 := Bridge{0x1000, 0xc010, 0x1000, 0xa016}
	for _, c := range []struct {
		name     string
		top, sub Bridge
		want     Distance
	}{
		{"Gen4", gen4, gen4, PIX},
		{"Gen5", gen5(0), gen5(1), PIX},
		{"Gen5, two switches", gen5(0), gen5(0), PXB},
		{"Gen4 below Gen5", gen5(0), gen4, PXB},
		{"another maker's board", Bridge{0x1000, 0xc010, 0x1028, 0xa016}, gen4, PXB},
		{"not known", Bridge{}, Bridge{}, PXB},
	} {
		t.Run(c.name, func(t *testing.T) {
			models := map[string]Bridge{top: c.top, sub: c.sub}
			gpu, nic := PlaceOf(gpuTwoBelow, 0).AsNCCL(models), PlaceOf(nicBehindSwitch, 0).AsNCCL(models)
			if got := gpu.DistanceTo(nic, false); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
