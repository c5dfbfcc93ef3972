// Package hostdata is the data of the host itself: settings, the RDMA stack, modules, the kernel log, sensors, as plain
// typed data.
package hostdata

import "strings"

// Setup is the settings of the host for RDMA training.
type Setup struct {
	// Files are the texts of files that no other section has, by path without the leading slash, and of directories (their
	// names, one in a line). Absent ones are left out.
	Files SetupFiles `foreign:"parsed"`
	// Launchers are the services that start jobs; nil: not searched.
	Launchers []Launcher
	// LaunchersUnread is why there may be others: access.Reason, or not completed; empty: there are none.
	LaunchersUnread string
	// MADFlags are the flags of this program that need management datagrams; nil in a replay.
	MADFlags []string
	// Interrupts are those of the functions of RDMA devices.
	Interrupts []DeviceInterrupts
	// Rows compare settings with what is wanted of them. They are evaluated on the complete node.
	Rows []SetupRow
}

// SetupFiles are files and directories by path.
type SetupFiles map[string]SetupFile

// SetupFile is a file, or a directory.
type SetupFile struct {
	Text   string
	Unread string // why it could not be read: access.Reason; empty: it was
}

// Text returns a file; ok is false where the host does not have it or it could not be read.
func (all SetupFiles) Text(file string) (text string, ok bool) {
	f, ok := all[file]
	return f.Text, ok && f.Unread == ""
}

// Unread returns why a file could not be read; empty if it was, or does not exist.
func (all SetupFiles) Unread(file string) string {
	if f := all[file]; f.Unread != "" {
		return "/" + file + ": " + f.Unread
	}
	return ""
}

// Names returns the entries of a directory.
func (all SetupFiles) Names(dir string) []string {
	text, _ := all.Text(dir)
	return strings.Fields(text)
}

// DeviceInterrupts are the interrupts of the PCI function of an RDMA device since its driver has requested them.
type DeviceInterrupts struct {
	Device    string
	CPUs      string // that are local to it: local_cpulist
	Local     uint64 // served by these
	Total     uint64
	Elsewhere bool   // the host has other CPUs
	Unread    string // why some could not be read: access.Reason; empty: all were
}

// Launcher is a service that starts jobs. They inherit its limits, unless it sets others.
type Launcher struct {
	Name string // of the process: slurmd, containerd
	// LockedMemory is the soft limit "Max locked memory" of /proc/PID/limits, bytes; nil: unlimited or unknown.
	LockedMemory *uint64
	Unlimited    bool
	Unread       string // why the limits could not be read: access.Reason; empty: they were
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

// SetupRow is a setting of an object. Its JSON form is part of a contract: docs/check.md.
type SetupRow struct {
	Domain   string     `json:"domain"`
	Setting  string     `json:"setting"`          // id of the table setup.Checks
	Name     string     `json:"name"`             // of the setting, as a noun
	Object   string     `json:"object"`           // mlx5_0/1, a netdev, a PCI address, a process, host
	Device   string     `json:"device,omitempty"` // RDMA device, where the object has one
	Port     int        `json:"port,omitempty"`   // 0: none
	State    SetupState `json:"state"`
	Severity string     `json:"severity,omitempty"` // of a difference: info; warning: it contradicts the traffic
	Found    string     `json:"found"`              // empty: unknown
	Wanted   string     `json:"wanted"`
	Basis    SetupBasis `json:"basis"`
	Evidence string     `json:"evidence,omitempty"` // for the wanted value, or why the found one is unknown
	Why      string     `json:"why"`                // consequence of a difference
	Remedy   string     `json:"remedy,omitempty"`   // the command that sets it
	Before   string     `json:"before,omitempty"`   // what to know or to do before the command; empty: nothing
	Source   string     `json:"source"`             // of the wanted value
	Alert    string     `json:"alert,omitempty"`    // that the difference raises or explains; empty: none

	Lossy     []LossyClass `json:"-"` // the traffic that a difference contradicts
	Conflicts []string     `json:"-"` // the IPv4 neighbours that it contradicts
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
