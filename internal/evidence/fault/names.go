package fault

import (
	"net/url"
	"strings"

	"rdma_exporter/internal/words"
)

// Name returns the name of a part: mlx5_0/1, mlx5_0, GPU 3.
func (f *Fault) Name() string {
	switch {
	case f.Labels["gpu"] != "":
		return "GPU " + f.Labels["gpu"]
	case f.Labels["port"] != "":
		return f.Labels["device"] + "/" + f.Labels["port"]
	}
	return f.Labels["device"]
}

// Noun returns what a part is: GPU, port, device.
func (f *Fault) Noun() string {
	switch {
	case f.Labels["gpu"] != "":
		return "GPU"
	case f.Labels["port"] != "":
		return "port"
	}
	return "device"
}

// Host returns the name of the host, without a port.
func (f *Fault) Host() string { return words.HostName(f.Labels["instance"]) }

// HostDevice returns the name of the device for a headline: "gpu-1 mlx5_3".
func (f *Fault) HostDevice() string { return f.Host() + " " + f.Labels["device"] }

// HostPort returns the name of the port for a headline: "gpu-1 mlx5_3/1".
func (f *Fault) HostPort() string {
	return f.Host() + " " + f.Labels["device"] + "/" + f.Labels["port"]
}

// Where returns the name of the port for a headline, with its first interface: "gpu-1 mlx5_3/1 (ens3f0np0)".
func (f *Fault) Where() string {
	netdevs := f.Netdevs()
	return f.HostPort() + inBrackets(netdevs[:min(1, len(netdevs))])
}

// WhereAll returns the name of the port for a headline, with all of its interfaces: "gpu-1 mlx5_3/1 (ib0, ib0.8001)".
func (f *Fault) WhereAll() string { return f.HostPort() + inBrackets(f.Netdevs()) }

// AtNetdev returns the name of the port for a headline, with the interface of the alert.
func (f *Fault) AtNetdev() string {
	netdev := f.Labels["netdev"]
	return f.HostPort() + When(netdev != "", " ("+netdev+")")
}

func inBrackets(netdevs []string) string {
	return When(len(netdevs) > 0, " ("+strings.Join(netdevs, ", ")+")")
}

// Netdevs returns the interfaces of the port.
func (f *Fault) Netdevs() []string {
	return f.LabelsOf(`max by (netdev) (rdma_port_info{netdev!="",$port})`, "netdev")
}

// PortName returns the name of a port: "mlx5_3/1".
func PortName(s Sample) string { return s.Labels["device"] + "/" + s.Labels["port"] }

// PortNames lists ports.
func PortNames(ports []Sample) string { return strings.Join(words.Map(ports, PortName), ", ") }

// Pasted returns a name for a command: no character of it has a meaning for a shell.
func Pasted(name string) string { return url.QueryEscape(name) }

// PastedPort returns the port for a command: "mlx5_3/1".
func (f *Fault) PastedPort() string { return Pasted(f.Labels["device"]) + "/" + f.Labels["port"] }

// PortOf returns the name of a port of a switch: "leaf-3 port 12".
func PortOf(system, port string) string { return system + When(port != "", " port "+port) }

// FarPort returns the far end of a cable: "leaf-3 port 12".
func FarPort(s Sample) string { return PortOf(s.Labels["system"], s.Labels["port_id"]) }

// Count returns the number of objects that the alert is on, with their noun: "2 ports".
func (f *Fault) Count(noun string) string { return words.Count(int(f.Value), noun) }

// One returns the first text if the alert is on one object, else the second.
func (f *Fault) One(one, several string) string {
	if f.Value == 1 {
		return one
	}
	return several
}

// JobSettings returns lines for settings of running jobs that are not as wanted; names is a regular expression.
func (f *Fault) JobSettings(names string) (e Lines) {
	for _, s := range f.Rows(`max by (workload, setting, value) (rdma_job_setting_info{setting=~"`+names+`",$host})`,
		"workload", "setting") {
		e.Add("Setting", words.Join(" ", s.Labels["setting"], s.Labels["value"])+" of job "+s.Labels["workload"]+
			" differs from what is wanted (rdma_exporter topo).")
	}
	return e
}

// ShowLink returns the command that shows the state of the port.
func (f *Fault) ShowLink() string {
	return "rdma link show " + f.PastedPort()
}
