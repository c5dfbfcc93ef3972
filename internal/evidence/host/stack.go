package host

import (
	"cmp"
	"strings"

	"rdma_exporter/internal/evidence/fault"
	"rdma_exporter/internal/words"
)

// stackFaults are those of the RDMA stack of a host.
var stackFaults = fault.Kinds{
	"host_misconfigured/driver": {Write: driverMismatch},
	"host_misconfigured/module": {Write: moduleRefused, OfHost: true},
	"device_missing/stack":      {Write: stackNotLoaded},
	"device_missing/verbs_node": {Write: verbsNodeMissing},
}

// stackState is what is missing of the RDMA stack of a host.
type stackState struct{ headline, meaning, evidence, notEvaluated, action string }

var (
	stackNoVerbs = stackState{
		headline:     "ib_uverbs not loaded",
		meaning:      "The host has RDMA devices, but ib_uverbs is not loaded: applications cannot open them.",
		evidence:     "RDMA devices present, ib_uverbs not loaded",
		notEvaluated: "use of the devices by jobs",
		action: "Load ib_uverbs (modprobe ib_uverbs) and add it to /etc/modules-load.d. If it does not load, check " +
			"whether it is blacklisted or not built for this kernel.",
	}
	stackNoDevice = stackState{
		headline:     "no RDMA device",
		meaning:      "The host has PCI functions that support RDMA, but no RDMA device.",
		evidence:     "PCI functions that support RDMA present, no RDMA device",
		notEvaluated: "ports, cables and optics (no RDMA device to read them from)",
		action: "Find why the driver is not loaded: not built for this kernel (dkms status), driver container failed " +
			"(kubectl -n nvidia-network-operator get pods), module blacklisted, or card refused by the driver. Then load " +
			"it: modprobe mlx5_ib (bnxt_re, irdma, efa), modprobe ib_uverbs. If RDMA is no longer intended on this host: " +
			"rdma_exporter accept --all.",
	}
)

func stackStateOf(label string) stackState {
	if label == "no_uverbs" {
		return stackNoVerbs
	}
	return stackNoDevice
}

// stackExpected is what is expected of the stack, and by what, by the label expected.
var stackExpected = map[string]string{
	"configuration": "RDMA devices, by --config.file",
	"inventory":     "RDMA devices, by the inventory of earlier boots",
	"compute":       "ib_uverbs, by NICs near GPUs",
	"device":        "ib_uverbs, by RDMA devices present",
	"":              "RDMA devices, by PCI functions made for RDMA only",
}

func stackNotLoaded(f *fault.Fault) fault.Text {
	headline, state := "", stackNoDevice
	if states := f.LabelsOf(`max by (state) (rdma_stack_info{$host})`, "state"); len(states) > 0 {
		state = stackStateOf(states[0])
		headline = ", " + state.headline
	}
	t := fault.Text{
		Summary: f.Host() + ": RDMA stack not loaded" + headline,
		Description: state.meaning + " Jobs do not start, or fall back to TCP at about a tenth of the " +
			"bandwidth.",
		Evidence: evidenceOfStack(f, state),
		Diagnose: "lspci -nnk | grep -iA3 -E 'infiniband|mellanox|ethernet' ; " +
			"lsmod | grep -E 'ib_core|ib_uverbs|_ib|_re|irdma' ; dkms status ; " +
			"journalctl -k -b | grep -iE 'mlx5|infiniband|bnxt|irdma' # as root",
		Action:      state.action,
		DrainReason: "No job on this host can use RDMA.",
	}
	if f.Labels["severity"] == "warning" {
		t.DrainReason = "RDMA is not known to be in use on this host: neither configuration, inventory nor GPUs expect " +
			"an RDMA device."
	}
	return t
}

func evidenceOfStack(f *fault.Fault, state stackState) fault.Lines {
	var e fault.Lines
	for _, r := range f.Rows(`max by (state, expected) (rdma_stack_info{$host})`) {
		e.Add("State", stackStateOf(r.Labels["state"]).evidence+".")
		e.Add("Expected", cmp.Or(stackExpected[r.Labels["expected"]], stackExpected[""])+".")
	}
	var functions []string
	for _, r := range f.Rows(`max by (pci_address, kind, driver) (rdma_stack_function_info{$host})`, "pci_address") {
		functions = append(functions, r.Labels["pci_address"]+" ("+cmp.Or(r.Labels["driver"], "no driver")+")")
	}
	if len(functions) > 0 {
		e.Add("Functions", strings.Join(functions, " ")+".")
	}
	if modules := f.LabelsOf(`max by (module) (rdma_kernel_module_loaded{$host} == 0)`, "module"); len(modules) > 0 {
		e.Add("Not loaded", strings.Join(modules, " ")+".")
	}
	if age, ok := f.Number(`max(rdma_stack_settled_seconds{$host})`); ok {
		e.Add("Last change", fault.Lasting(age)+" ago (boot, or load or removal of a kernel module).")
	}
	e.Add("Not evaluated", state.notEvaluated+".")
	return e
}

func verbsNodeMissing(f *fault.Fault) fault.Text {
	var files []string
	var e fault.Lines
	for _, node := range f.LabelsOf(`max by (node) (rdma_device_verbs_node_present{$device} == 0)`, "node") {
		files = append(files, "/dev/infiniband/"+node)
		e.Add("Missing", "/dev/infiniband/"+node+".")
	}
	e.Add("Not evaluated", "permissions of the device files that are present.")
	return fault.Text{
		Summary: words.Join(" ", f.HostDevice()+": port ACTIVE, device file missing:", strings.Join(files, ", ")),
		Description: "A port of " + f.Labels["device"] + " is ACTIVE, but the device file in /dev/infiniband by which " +
			"applications open the device is missing. A job that opens this device fails, or runs without it at lower " +
			"bandwidth.",
		Evidence: e,
		Diagnose: "ls -l /dev/infiniband ; grep . /sys/class/infiniband_verbs/uverbs*/{ibdev,dev} ; " +
			"findmnt -T /dev/infiniband ; rdma link show",
		Action: "Create the device file again with the numbers of /sys/class/infiniband_verbs/uverbsN/dev (mknod " +
			"/dev/infiniband/uverbsN c MAJOR MINOR), or drain the host and reload ib_uverbs. Then remove the cause: a " +
			"udev rule, a script that cleans /dev, or a container that mounts over it.",
		DrainReason: "A job that opens this device fails.",
	}
}

func driverMismatch(f *fault.Fault) fault.Text {
	headline := "is in-tree, MLNX_OFED is installed and not in use"
	meaning := "MLNX_OFED is installed, and the loaded driver is that of the kernel: the build for this kernel failed, " +
		"or the initramfs has the kernel's own module."
	if f.Has(`rdma_driver_as_pinned{$host} == 0`) {
		headline = "differs from --config.file"
		meaning = "The loaded driver is not the out-of-tree version that --config.file pins for this host."
	}
	drivers, evidence := driversAndPins(f)
	return fault.Text{
		Summary: f.Host() + ": RDMA driver " + words.Join(", ", append([]string{headline}, drivers...)...),
		Description: meaning + " Jobs may lack features of the installed stack (counters, congestion control, its " +
			"GPUDirect module), user libraries may not match, and the host may behave differently from the other hosts.",
		Evidence: evidence,
		Diagnose: "cat /sys/module/mlx5_core/version ; modinfo -F filename mlx5_core ; uname -r ; dkms status",
		Action: "Drain the host, install the expected stack for the running kernel, rebuild the initramfs, and load its " +
			"modules or reboot. If the pin is outdated or the in-tree driver is intended, change --config.file.",
		DrainReason: "RDMA works with the loaded driver; a drain is needed only to replace it.",
	}
}

// driversAndPins returns the drivers that differ from what is pinned, and the pins, for a headline and as evidence.
func driversAndPins(f *fault.Fault) (headline []string, e fault.Lines) {
	for _, r := range f.Rows(`max by (module, version, flavour) (rdma_driver_info{$host}) `+
		`and on (module) rdma_driver_as_pinned{$host} == 0`, "module") {
		module, version, flavour := r.Labels["module"], r.Labels["version"], r.Labels["flavour"]
		headline = append(headline, words.Join(" ", module, version, "("+flavour+")"))
		e.Add("Driver", module+", "+flavour+fault.When(version != "", ", version "+version)+".")
	}
	for _, r := range f.Rows(`max by (module, pin) (rdma_driver_pin_info{$host})`, "module") {
		headline = append(headline, "expected "+r.Labels["pin"])
		e.Add("Expected", r.Labels["module"]+", out-of-tree, version "+r.Labels["pin"]+", by --config.file.")
	}
	for _, object := range f.LabelsOf(
		`max by (object, value) (rdma_setup_info{setting="ofed_not_in_use",value="in-tree",$host})`, "object") {
		e.Add("Loaded", object+" of the kernel. MLNX_OFED is on the disk: rdma_exporter check --setup names its version.")
	}
	e.Add("Not evaluated", "other modules of the stack, firmware.")
	return headline, e
}

// providers are the packages that bring modules, by the begin of the name of a symbol that another module lacks.
var providers = []struct{ symbol, module, packages string }{
	{"ib_register_peer_memory_client", "ib_core", "ib_core of MLNX_OFED or DOCA-OFED: that of the kernel has no peer memory"},
	{"ib_unregister_peer_memory_client", "ib_core", "ib_core of MLNX_OFED or DOCA-OFED: that of the kernel has no peer memory"},
	{"nvidia_p2p_", "nvidia", "the driver package of the GPU"},
	{"mlx5_", "mlx5_core", "the package of mlx5_core"},
	{"mlx4_", "mlx4_core", "the package of mlx4_core"},
	{"rdma_", "ib_core", "the package of ib_core"},
	{"ib_", "ib_core", "the package of ib_core"},
	{"uverbs_", "ib_uverbs", "the package of ib_uverbs"},
	{"bnxt_", "bnxt_en", "the package of bnxt_en"},
	{"ice_", "ice", "the package of ice"},
}

// refusedModules returns the modules that the kernel has refused and that are not loaded, with the packages that do not
// fit together.
func refusedModules(f *fault.Fault, matcher string) (modules []string, e fault.Lines) {
	for _, r := range f.Rows(`max by (driver, detail) (rdma_kernel_log_last_event_timestamp_seconds{kind="module_refused",$host}
		and on (driver, kind) rdma_kernel_log_unresolved{driver`+matcher+`,$host})`, "driver") {
		module, symbol := r.Labels["driver"], r.Labels["detail"]
		modules = append(modules, module)
		e.Add("Refused", module+fault.When(symbol != "", ", symbol "+symbol)+", at "+fault.UTC(r.Value)+".")
		for _, p := range providers {
			if strings.HasPrefix(symbol, p.symbol) {
				of := `max by (flavour) (rdma_driver_info{module="` + p.module + `",$host})`
				e.Add("Packages", "that of "+module+" and "+p.packages+" do not fit together.")
				e.Add("Loaded", fault.When(f.Has(of), p.module+", "+f.LabelOf(of, "flavour")+"."))
				break
			}
		}
	}
	return modules, e
}

func moduleRefused(f *fault.Fault) fault.Text {
	modules, e := refusedModules(f, `!~"nvidia.*|nv_peer_mem"`)
	return fault.Text{
		Summary: f.Host() + ": kernel refuses to load " + strings.Join(modules, ", "),
		Description: "The kernel has refused a module that RDMA or GPUDirect RDMA needs: a symbol is missing, or of another " +
			"build. The module was built against other modules than those that are loaded.",
		Evidence: e,
		Diagnose: "dmesg -T | grep -iE 'unknown symbol|disagrees about version|exec format' | tail -20 ; dkms status # as root",
		Action: "Install both packages for the running kernel, in the order RDMA driver, then GPU driver (rebuild the second: " +
			"dkms autoinstall), then load the module.",
		DrainReason: "Devices that have their modules work.",
	}
}
