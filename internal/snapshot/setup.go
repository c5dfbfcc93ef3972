package snapshot

// Setup is the settings of the host for RDMA training.
type Setup struct {
	// Files are the texts of files that no other section has, by path without the leading slash, and of directories (their
	// names, one in a line). Absent ones are left out.
	Files map[string]SetupFile
	// Launchers are the services that start jobs; nil: not searched.
	Launchers []Launcher
	// LaunchersUnread is why there may be others: host.Reason, or not completed; empty: there are none.
	LaunchersUnread string
	// Interrupts are those of the functions of RDMA devices.
	Interrupts []DeviceInterrupts
	// Rows compare settings with what is wanted of them. They are evaluated on the complete node.
	Rows []SetupRow
}

// SetupFile is a file, or a directory.
type SetupFile struct {
	Text   string
	Unread string // why it could not be read: host.Reason; empty: it was
}

// DeviceInterrupts are the interrupts of the PCI function of an RDMA device since its driver has requested them.
type DeviceInterrupts struct {
	Device    string
	CPUs      string // that are local to it: local_cpulist
	Local     uint64 // served by these
	Total     uint64
	Elsewhere bool   // the host has other CPUs
	Unread    string // why some could not be read: host.Reason; empty: all were
}

// Launcher is a service that starts jobs. They inherit its limits, unless it sets others.
type Launcher struct {
	Name string `capture:",name"` // of the process: slurmd, containerd
	// LockedMemory is the soft limit "Max locked memory" of /proc/PID/limits, bytes; nil: unlimited or unknown.
	LockedMemory *uint64 `capture:",value"`
	Unlimited    bool    `capture:",value,word=unlimited"`
	Unread       string  `capture:",value,after=!"` // why the limits could not be read: host.Reason; empty: they were
}

// SetupState is the result of the comparison of a setting.
type SetupState string

// The results.
const (
	SetupOK      SetupState = "ok"
	SetupDiffers SetupState = "differs"
	SetupUnknown SetupState = "unknown" // it could not be read
)

// SetupBasis is where the wanted value comes from, strongest first.
type SetupBasis string

// The sources of wanted values.
const (
	SetupSite    SetupBasis = "site"    // the site configuration
	SetupMachine SetupBasis = "machine" // the traffic, jobs or sibling devices of this host
	SetupGuide   SetupBasis = "guide"   // a vendor's guide: a recommendation
)

// SetupRow is a setting of an object.
type SetupRow struct {
	Setting string // id of the table setup.Checks
	Domain  string
	Object  string // mlx5_0/1, mlx5_0, a netdev, a PCI address or a process; host for the host
	Device  string // RDMA device, where the object has one
	Port    int    // 0: none

	Found    string // empty: unknown
	Wanted   string
	Basis    SetupBasis
	State    SetupState
	Severity string // of a difference: info, or warning where it contradicts what the machine does
	Alert    string // that the difference raises or explains; empty: none

	Name     string // of the setting, as a noun
	Why      string // consequence of a difference
	Evidence string // for the wanted value, or why the found one is unknown
	Remedy   string // the command that sets it
	Before   string // what to know or to do before the command; empty: nothing
	Source   string // of the wanted value

	Lossy     []LossyClass // the traffic that a difference contradicts
	Conflicts []string     // the IPv4 neighbours that it contradicts
}

// LossyClass is a traffic class that leads to a priority without PFC on a netdev of a lossless port.
type LossyClass struct {
	Device   string
	Port     int
	Netdev   string
	Priority int
	Job      string // empty: the class is that of the port
	Setting  string // variable or file that sets it
	Class    int
}
