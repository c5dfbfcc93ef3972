package evidence

import (
	"net/url"
	"strings"

	"rdma_exporter/internal/words"
)

// host is the name of the host, without a port.
func (f *Fault) host() string { return words.HostName(f.Labels["instance"]) }

// hostDevice is the name of the device for a headline: "gpu-1 mlx5_3".
func (f *Fault) hostDevice() string { return f.host() + " " + f.Labels["device"] }

// hostPort is the name of the port for a headline: "gpu-1 mlx5_3/1".
func (f *Fault) hostPort() string {
	return f.host() + " " + f.Labels["device"] + "/" + f.Labels["port"]
}

// where is the name of the port for a headline, with its first interface: "gpu-1 mlx5_3/1 (ens3f0np0)".
func (f *Fault) where() string {
	netdevs := f.netdevs()
	return f.hostPort() + inBrackets(netdevs[:min(1, len(netdevs))])
}

// whereAll is the name of the port for a headline, with all of its interfaces: "gpu-1 mlx5_3/1 (ib0, ib0.8001)".
func (f *Fault) whereAll() string { return f.hostPort() + inBrackets(f.netdevs()) }

// atNetdev is the name of the port for a headline, with the interface of the alert.
func (f *Fault) atNetdev() string {
	netdev := f.Labels["netdev"]
	return f.hostPort() + when(netdev != "", " ("+netdev+")")
}

func inBrackets(netdevs []string) string {
	return when(len(netdevs) > 0, " ("+strings.Join(netdevs, ", ")+")")
}

// netdevs are the interfaces of the port.
func (f *Fault) netdevs() []string {
	return f.labels(`max by (netdev) (rdma_port_info{netdev!="",$port})`, "netdev")
}

func portName(s Sample) string { return s.Labels["device"] + "/" + s.Labels["port"] }

func portNames(ports []Sample) string { return strings.Join(words.Of(ports, portName), ", ") }

// pasted is a name in a command: no character of it has a meaning for a shell.
func pasted(name string) string { return url.QueryEscape(name) }

// pastedPort is the port for a command: "mlx5_3/1".
func (f *Fault) pastedPort() string { return pasted(f.Labels["device"]) + "/" + f.Labels["port"] }

func portOf(system, port string) string { return system + when(port != "", " port "+port) }

// farPort is the far end of a cable: "leaf-3 port 12".
func farPort(s Sample) string { return portOf(s.Labels["system"], s.Labels["port_id"]) }
