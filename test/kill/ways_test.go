package kill_test

import (
	"fmt"
	"path"
	"strings"

	"rdma_exporter/internal/account"
	"rdma_exporter/internal/capture"
	"rdma_exporter/internal/check"
)

func isWell(o account.Object) bool {
	return o.Class == account.Healthy || o.Class == account.NotExpected
}

// targetsOf returns the compute objects of a kind that are healthy.
func targetsOf(x tree, r check.Report, kind string) (out []target) {
	for _, o := range r.Objects {
		if string(o.Kind) != kind || o.Class != account.Healthy || !o.Compute {
			continue
		}
		at := target{name: o.Name}
		switch kind {
		case "gpu":
			at.address = o.Name
		default:
			at.device, at.port, _ = strings.Cut(o.Name, "/")
			at.address = path.Base(path.Dir(path.Dir(x["sys/class/infiniband/"+at.device].Target)))
		}
		if link, ok := x["sys/bus/pci/devices/"+at.address]; ok {
			at.folder = path.Join("sys/bus/pci/devices", link.Target)
			out = append(out, at)
		}
	}
	return out
}

// remove removes a file, or a directory with all below it, and links to it.
func (x tree) remove(name string) {
	for p, e := range x {
		if p == name || strings.HasPrefix(p, name+"/") {
			delete(x, p)
		} else if e.Kind == capture.Link {
			if to := path.Join(path.Dir(p), e.Target); to == name || strings.HasPrefix(to, name+"/") {
				delete(x, p)
			}
		}
	}
}

// write replaces a file that is there.
func (x tree) write(name, text string) {
	if e, ok := x[name]; ok && e.Kind == capture.File {
		e.Data = []byte(text)
		x[name] = e
	}
}

// replace replaces the value of a key in an answer, if it has it.
func (x tree) replace(name, key, value string) {
	e, ok := x[name]
	if !ok || e.Kind != capture.File {
		return
	}
	var lines []string
	for line := range strings.Lines(string(e.Data)) {
		if strings.HasPrefix(line, key+": ") {
			line = key + ": " + value + "\n"
		}
		lines = append(lines, line)
	}
	x.write(name, strings.Join(lines, ""))
}

// netdevs returns the interfaces of a function.
func (x tree) netdevs(folder string) (out []string) {
	for p := range x {
		if name, ok := strings.CutPrefix(p, "sys/class/net/"); ok && !strings.Contains(name, "/") &&
			strings.HasPrefix(path.Join("sys/class/net", x[p].Target), folder+"/net/") {
			out = append(out, name)
		}
	}
	return out
}

func (t target) files() string {
	return t.folder + "/infiniband/" + t.device + "/ports/" + t.port + "/"
}

// linkDown is a port whose cable was pulled.
func linkDown(x tree, t target) {
	x.write(t.files()+"state", "1: DOWN\n")
	phys, n := "2: Polling\n", "2"
	if string(x[t.files()+"link_layer"].Data) != "InfiniBand\n" {
		phys, n = "3: Disabled\n", "3"
	}
	x.write(t.files()+"phys_state", phys)
	x.replace("rdma/"+t.device+"/"+t.port+"/port", "state", "1")
	x.replace("rdma/"+t.device+"/"+t.port+"/port", "physical_state", n)
	for _, name := range x.netdevs(t.folder) {
		x.write(t.folder+"/net/"+name+"/operstate", "down\n")
		x.write(t.folder+"/net/"+name+"/carrier", "0\n")
		x.replace("ethtool/"+name+"/linkstate", "link", "0")
		x.remove("ethtool/" + name + "/linkmodes")
	}
}

// slow is a port that trained at an eighth of its rate, on one lane.
func slow(x tree, t target) {
	var rate float64
	if _, err := fmt.Sscanf(string(x[t.files()+"rate"].Data), "%g", &rate); err != nil {
		return
	}
	x.write(t.files()+"rate", fmt.Sprintf("%g Gb/sec (1X)\n", rate/8))
	for _, name := range x.netdevs(t.folder) {
		x.replace("ethtool/"+name+"/linkmodes", "speed", fmt.Sprintf("%.0f", 1000*rate/8))
		x.replace("ethtool/"+name+"/linkmodes", "lanes", "1")
	}
}

// stateUnreadable is a file whose read fails, and no answer of netlink.
func stateUnreadable(x tree, t target) {
	e := x[t.files()+"state"]
	e.Kind, e.Errno, e.Data = capture.Error, 5, nil
	x[t.files()+"state"] = e
	x.remove("rdma/" + t.device + "/" + t.port + "/port")
}

// withoutDriver is a function whose driver failed to probe.
func withoutDriver(x tree, t target) {
	for _, name := range x.netdevs(t.folder) {
		x.remove("sys/class/net/" + name)
		x.remove("ethtool/" + name)
		x.remove("dcb/" + name)
	}
	for _, folder := range []string{"infiniband", "infiniband_verbs", "infiniband_mad", "net"} {
		x.remove(t.folder + "/" + folder)
	}
	x.remove("rdma/" + t.device)
	x.remove("sys/class/infiniband/" + t.device)
	delete(x, t.folder+"/driver")
}

// leaveBus is a function that left the bus.
func leaveBus(x tree, t target) {
	withoutDriver(x, t)
	x.remove(t.folder)
	x.remove("sys/bus/pci/devices/" + t.address)
}

// hidden is a GPU that NVML no longer lists, which the driver still has.
func hidden(x tree, t target) {
	for p, e := range x {
		if strings.HasPrefix(p, "nvml/gpu/") && strings.Contains(string(e.Data), "pci_address: "+t.address+"\n") {
			x.remove(p)
		}
	}
}

// goneGPU is one that left the bus too.
func goneGPU(x tree, t target) {
	hidden(x, t)
	x.remove(t.folder)
	x.remove("sys/bus/pci/devices/" + t.address)
	x.remove("proc/driver/nvidia/gpus/" + t.address)
}
