//go:build !race

package remedies_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/hostdata"
)

// model is a host on which the commands of remedies are carried out: the settings that they change, as the tool reads
// them afterwards. Files are written to Setup.Files.
type model struct {
	*snapshot.Node
	job    string            // whose environment export and unset change
	writes map[string]string // thing → value, of all commands
}

// run carries out a line of shell: commands separated by semicolons, output to files, comments.
func (m *model) run(line string) error {
	for _, words := range commands(line) {
		if err := m.command(words); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(words, " "), err)
		}
	}
	return nil
}

// commands splits a line as a shell does: words, quotes, "; " between commands, and comments.
func commands(line string) (out [][]string) {
	var words []string
	var word strings.Builder
	open, quote := false, false
	end := func() {
		if open {
			words = append(words, word.String())
		}
		word.Reset()
		open = false
	}
	for _, c := range line {
		switch {
		case c == '\'':
			quote, open = !quote, true
		case quote:
			word.WriteRune(c)
		case c == '#' && !open:
			if len(words) > 0 {
				out = append(out, words)
			}
			return out
		case c == ' ':
			end()
		case c == ';':
			end()
			if len(words) > 0 {
				out = append(out, words)
			}
			words = nil
		default:
			open = true
			word.WriteRune(c)
		}
	}
	if end(); len(words) > 0 {
		out = append(out, words)
	}
	return out
}

// set notes that a thing gets a value. Two remedies that give it different ones contradict each other.
func (m *model) set(thing, value string) error {
	if before, ok := m.writes[thing]; ok && before != value {
		return fmt.Errorf("%s is set to %s and to %s", thing, before, value)
	}
	m.writes[thing] = value
	return nil
}

func (m *model) command(w []string) error {
	line := strings.Join(w, " ")
	number := func(text string) uint64 { n, _ := strconv.ParseUint(text, 0, 32); return n }
	switch {
	case (w[0] == "echo" || w[0] == "printf") && len(w) == 4 && w[2] == ">":
		return m.write(w[3], strings.ReplaceAll(strings.TrimSuffix(w[1], `\n`), `\n`, "\n"))
	case w[0] == "mkdir", line == "systemctl daemon-reload", line == "udevadm control --reload":
		return nil
	case strings.HasPrefix(line, "udevadm trigger --subsystem-match=infiniband_verbs"):
		rule := m.Setup.Files["etc/udev/rules.d/99-rdma-uverbs.rules"].Text
		mode := regexp.MustCompile(`MODE="(\d+)"`).FindStringSubmatch(rule)
		if mode == nil {
			return fmt.Errorf("no mode in %q", rule)
		}
		for i := range m.Modules.Nodes {
			if m.Modules.Nodes[i].Class == "uverbs" {
				m.Modules.Nodes[i].Mode = mode[1]
			}
		}
		return nil
	case strings.HasPrefix(line, "systemctl restart "):
		conf := m.Setup.Files["etc/systemd/system/"+w[2]+".service.d/memlock.conf"].Text
		for i := range m.Setup.Launchers {
			if l := &m.Setup.Launchers[i]; l.Name == w[2] && strings.Contains(conf, "LimitMEMLOCK=infinity") {
				l.Unlimited, l.LockedMemory = true, nil
			}
		}
		return nil
	case strings.HasPrefix(line, "systemctl enable "):
		m.add("etc/systemd/system/multi-user.target.wants", w[2]+".service")
		return nil
	case w[0] == "modprobe" && len(w) == 2:
		m.load(w[1])
		return nil
	case line == "modprobe -r nvidia_fs":
		delete(m.Setup.Files, "sys/module/nvidia_fs/initstate")
		return nil
	case w[0] == "ip" && strings.HasPrefix(line, "ip link set dev ") && len(w) == 7 && w[5] == "mtu":
		return m.mtu(w[4], number(w[6]))
	case strings.HasPrefix(line, "ip address add ADDRESS/LENGTH dev "):
		m.eachPort(func(_ *snapshot.Device, p *snapshot.Port) {
			if len(p.Netdev) > 0 && p.Netdev[0].Name == w[5] {
				p.RoCEv2["ipv4"] = snapshot.GIDFamily{Entries: 1, First: 3}
			}
		})
		return nil
	case w[0] == "export":
		name, value, _ := strings.Cut(w[1], "=")
		return m.environment(name, value)
	case w[0] == "unset":
		for _, name := range w[1:] {
			if err := m.environment(name, ""); err != nil {
				return err
			}
		}
		return nil
	case w[0] == "sysctl" && w[1] == "-w":
		for _, pair := range w[2:] {
			name, value, _ := strings.Cut(pair, "=")
			parts := strings.Split(name, ".")
			for i := range parts {
				parts[i] = strings.ReplaceAll(parts[i], "/", ".")
			}
			if err := m.write("/proc/sys/"+strings.Join(parts, "/"), value); err != nil {
				return err
			}
		}
		return nil
	case w[0] == "setpci" && w[1] == "-s":
		return m.configure(w[2], w[3])
	case w[0] == "mlnx_qos" && w[1] == "-i":
		return m.qos(w[2], func(q *snapshot.NetdevQoS) error {
			q.Trust = strings.TrimPrefix(w[3], "--trust=")
			return m.set("trust of "+w[2], q.Trust)
		})
	case w[0] == "dcb" && len(w) > 4 && w[3] == "dev":
		return m.qos(w[4], func(q *snapshot.NetdevQoS) error { return m.dcb(q, w[1]+" "+w[2], w[5:]) })
	}
	return fmt.Errorf("the model has no such command")
}

// write changes a file, and the settings that it stands for.
func (m *model) write(file, value string) error {
	if err := m.set(file, value); err != nil {
		return err
	}
	file = strings.TrimPrefix(file, "/")
	part := strings.Split(file, "/")
	n, _ := strconv.ParseUint(value, 10, 64)
	net := func(change func(q *snapshot.NetdevQoS) error) error { return m.qos(part[3], change) }
	switch {
	case strings.HasPrefix(file, "sys/class/infiniband/") && part[len(part)-1] == "traffic_class":
		for i := range m.QoS.Ports {
			if q := &m.QoS.Ports[i]; q.Device == part[3] && strconv.Itoa(q.Port) == part[5] {
				q.TrafficClass = &n
				return nil
			}
		}
		return fmt.Errorf("no port")
	case strings.HasPrefix(file, "sys/class/net/") && strings.Contains(file, "/ecn/"):
		return net(func(q *snapshot.NetdevQoS) error {
			switch last := part[len(part)-1]; {
			case part[5] == "roce_np" && part[6] == "enable":
				q.Notification[last[0]-'0'] = &n
			case part[5] == "roce_rp" && part[6] == "enable":
				q.Reaction[last[0]-'0'] = &n
			case last == "cnp_dscp":
				q.CNPDSCP = &n
			case last == "cnp_802p_prio":
				q.CNPPriority = &n
			default:
				return fmt.Errorf("no such file")
			}
			return nil
		})
	case strings.HasPrefix(file, "sys/class/net/") && part[len(part)-1] == "mode":
		return m.ipoib(part[3], value)
	case strings.HasPrefix(file, "sys/bus/pci/devices/"):
		for _, d := range m.InfiniBand.Devices {
			if d.PCIAddress == part[4] {
				to := "sys/class/infiniband/" + d.Name + "/device/" + strings.Join(part[5:], "/")
				if f, ok := m.Setup.Files[to]; ok && f.Unread == "" {
					m.Setup.Files[to] = hostdata.SetupFile{Text: value}
				}
			}
		}
		return nil
	}
	m.Setup.Files[file] = hostdata.SetupFile{Text: value}
	if strings.HasPrefix(file, "etc/modules-load.d/") {
		m.add("etc/modules-load.d", part[2])
	}
	return nil
}

// add adds a name to a directory.
func (m *model) add(dir, name string) {
	m.Setup.Files[dir] = hostdata.SetupFile{Text: strings.TrimSpace(m.Setup.Files[dir].Text + "\n" + name)}
}

// ipoib is ipoib_set_mode of drivers/infiniband/ulp/ipoib/ipoib_main.c: it refuses connected mode without its flag in
// the address, and datagram mode has the MTU of its broadcast group.
func (m *model) ipoib(netdev, mode string) error {
	for file := range m.Setup.Files {
		dir, ok := strings.CutSuffix(file, "/device/net/"+netdev+"/mode")
		if !ok {
			continue
		}
		bits, err := strconv.ParseUint(m.Setup.Files[dir+"/device/net/"+netdev+"/address"].Text[:2], 16, 8)
		if err != nil || mode == "connected" && bits&0x80 == 0 {
			return fmt.Errorf("EINVAL")
		}
		m.Setup.Files[file] = hostdata.SetupFile{Text: mode}
		m.eachPort(func(_ *snapshot.Device, p *snapshot.Port) {
			for i := range p.Netdev {
				if nd := &p.Netdev[i]; nd.Name == netdev && nd.MTU != nil && mode == "datagram" {
					nd.MTU = new(min(*nd.MTU, 2044))
				}
			}
		})
		return nil
	}
	return fmt.Errorf("no such file")
}

func (m *model) mtu(netdev string, bytes uint64) error {
	found := false
	m.eachPort(func(d *snapshot.Device, p *snapshot.Port) {
		for i := range p.Netdev {
			if nd := &p.Netdev[i]; nd.Name == netdev {
				mode := m.Setup.Files["sys/class/infiniband/"+d.Name+"/device/net/"+netdev+"/mode"].Text
				found = p.LinkLayer != "InfiniBand" || mode == "connected" || bytes <= 4092
				nd.MTU = &bytes
			}
		}
	})
	if !found {
		return fmt.Errorf("EINVAL")
	}
	return m.set("MTU of "+netdev, strconv.FormatUint(bytes, 10))
}

func (m *model) load(module string) {
	if module == "nvidia_fs" {
		m.Setup.Files["sys/module/nvidia_fs/initstate"] = hostdata.SetupFile{Text: "live"}
		versions := strings.Fields(m.Setup.Files["var/lib/dkms/nvidia-fs"].Text)
		if len(versions) > 0 {
			m.Setup.Files["proc/driver/nvidia-fs/stats"] = hostdata.SetupFile{
				Text: "NVFS Driver(version: " + slices.Max(versions) + ")\nActive Process: 0",
			}
		}
		return
	}
	for i := range m.Modules.Modules {
		if x := &m.Modules.Modules[i]; x.Name == module {
			x.Loaded, x.Known = true, true
		}
	}
}

func (m *model) environment(name, value string) error {
	if err := m.set(name+" of "+m.job, value); err != nil {
		return err
	}
	delete(m.Setup.Files, "etc/nccl.conf")
	for i := range m.GDR.Processes {
		p := &m.GDR.Processes[i]
		of := slices.Contains([]string{p.Job, p.Command, "process " + strconv.Itoa(p.PID)}, m.job)
		if !of && m.job != "" {
			continue
		}
		if p.Env == nil {
			p.Env = map[string]string{}
		}
		if delete(p.Conf, name); value == "" {
			delete(p.Env, name)
		} else {
			p.Env[name] = value
		}
	}
	// The GIDs that a job uses follow from its index.
	if name == "NCCL_IB_GID_INDEX" {
		m.GDR.JobGIDs = nil
	}
	return nil
}

// configure writes Device Control of a device, or ACS Control of a bridge.
func (m *model) configure(address, write string) error {
	for i := range m.GDR.NICs {
		n := &m.GDR.NICs[i]
		var value, mask uint64
		switch {
		case strings.HasPrefix(write, "ECAP_ACS+6.w=0000"):
			n.RedirectAt = slices.DeleteFunc(n.RedirectAt, func(a string) bool { return a == address })
			if n.Redirect != nil && len(n.RedirectAt) == 0 {
				n.Redirect = new(false)
			}
			continue
		case !strings.HasPrefix(write, "CAP_EXP+8.w="):
			return fmt.Errorf("no such register")
		case n.PCIAddress != address || n.Settings == nil:
			continue
		}
		if k, err := fmt.Sscanf(strings.TrimPrefix(write, "CAP_EXP+8.w="), "%x:%x", &value, &mask); k != 2 || err != nil {
			return fmt.Errorf("no value and mask")
		}
		if mask == 0x7000 {
			n.Settings.MaxReadRequest = 128 << (value >> 12)
		} else if mask == 0x10 {
			n.Settings.RelaxedOrdering = value == 0x10
		} else {
			return fmt.Errorf("no such bits")
		}
		if err := m.set(fmt.Sprintf("Device Control %x of %s", mask, address), strconv.FormatUint(value, 16)); err != nil {
			return err
		}
	}
	return nil
}

func (m *model) qos(netdev string, change func(*snapshot.NetdevQoS) error) error {
	for i := range m.QoS.Netdevs {
		if q := &m.QoS.Netdevs[i]; q.Name == netdev {
			return change(q)
		}
	}
	return fmt.Errorf("no netdev")
}

// dcb is dcb(8): an object with a command, and the arguments after the netdev.
func (m *model) dcb(q *snapshot.NetdevQoS, command string, args []string) error {
	pairs := args[1:]
	switch command + " " + args[0] {
	case "app replace dscp-prio", "app add dscp-prio":
		q.Trust = "dscp" // mlx5e_dcbnl_ieee_setapp; with mlnx_qos it is so already
		if q.DSCPs == nil {
			q.DSCPs = &[snapshot.Priorities][]uint8{}
		}
	case "app flush dscp-prio":
		q.Trust, q.DSCPs = "pcp", nil
		return m.set("trust of "+q.Name, "pcp")
	}
	if len(pairs) == 0 {
		return fmt.Errorf("no values")
	}
	for _, pair := range pairs {
		a, b, _ := strings.Cut(pair, ":")
		x, errX := strconv.Atoi(a)
		y, errY := strconv.Atoi(b)
		if (a != "all" && errX != nil) || (errY != nil && b != "on" && b != "off") {
			return fmt.Errorf("%q", pair)
		}
		switch command + " " + args[0] {
		case "pfc set prio-pfc":
			for p := range snapshot.Priorities {
				if a == "all" || p == x {
					q.PFC.Enabled[p] = b == "on"
				}
			}
		case "app replace dscp-prio", "app add dscp-prio":
			for p := range q.DSCPs {
				q.DSCPs[p] = slices.DeleteFunc(q.DSCPs[p], func(d uint8) bool { return int(d) == x })
			}
			q.DSCPs[y] = append(q.DSCPs[y], uint8(x))
		case "ets set prio-tc":
			q.Classes.OfPrio[x] = uint64(y)
		case "ets set tc-tsa":
			continue
		case "ets set tc-bw":
			for c := range q.Classes.Bandwidth {
				if a == "all" || c == x {
					q.Classes.Bandwidth[c] = uint64(y)
				}
			}
			sum := uint64(0)
			for c, b := range q.Classes.Bandwidth {
				if q.Classes.Algorithm[c] == 2 {
					sum += b
				}
			}
			if pair == pairs[len(pairs)-1] && sum != 100 {
				return fmt.Errorf("bandwidth of ETS classes is %d%%", sum)
			}
		default:
			return fmt.Errorf("the model has no such command")
		}
		if a != "all" {
			if err := m.set(command+" "+a+" of "+q.Name, b); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *model) eachPort(change func(*snapshot.Device, *snapshot.Port)) {
	for i := range m.InfiniBand.Devices {
		d := &m.InfiniBand.Devices[i]
		for j := range d.Ports {
			change(d, &d.Ports[j])
		}
	}
}
