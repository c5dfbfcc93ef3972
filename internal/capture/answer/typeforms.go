// Package answer writes and reads the entries of a capture that are no files of the machine: answers of the kernel, of
// libraries and of modules, as lines "KEY: VALUE".
package answer

import (
	"reflect"
	"strings"
	"sync"

	"rdma_exporter/internal/host"
	"rdma_exporter/internal/host/dcb"
	"rdma_exporter/internal/kernellog"
	"rdma_exporter/internal/snapshot"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/hostdata"
	"rdma_exporter/internal/snapshot/qp"
	"rdma_exporter/internal/snapshot/wire"
)

// typeForms are the forms of the recorded types. Answers of the kernel and of libraries are stored as lines
// "KEY: VALUE", to be read and edited like files. A form has a line "FIELD KEY,OPTION,OPTION=VALUE" for each field of
// the type, in the order in which the answer is written; "FIELD -" is not recorded. Nil and the empty string have no
// line. The key of a nested struct is the prefix of its keys, that of a map or of a list the prefix of its names.
//
// Numbers and texts:
//
//	hex          written as 0x…
//	max=N        the highest number
//	len=N        the number of words
//	enum=NAME    names of numbers, of enums
//	micros       a duration in microseconds; others are in seconds
//	escaped      escaped like a path
//	omitempty    zero has no line either
//	counter      increases: a replay continues it
//	open         of any field: unknown keys of the type are ignored, which a later kernel or version may add
//
// Fields that share a key are alternatives: the first that has a value is written.
//
//	word=WORD    a bool: the value is WORD
//	any          a bool that is also true with another value
//	bare         a bool: if true a line without a value
//	after=TEXT   a text after TEXT; also if it is empty
//	set=WORD     a bool: the value lists the words of those that are true
//
// Lists. An element of a list is a line "KEYNAME: VALUE", where VALUE is "key=value key=value", or "KEY: VALUE" if it
// has no name:
//
//	name         part of the name, after KEY
//	none=N       the number that stands for a part that is absent, as nil does for a pointer
//	value        the only value of an element
//	columns      VALUE has values only, "-" if empty; the last one has the rest
//	note         a line of its own below an element, for people: a replay ignores it
//	group        elements with one name share a line
//	each         a list of texts, one per line
//	lanes        a list of numbers, in lines "KEY/laneN"
//	has=KEY      a line that marks a list or map that is not nil, with the number of elements
//	has=KEY TEXT the same with a text
var typeForms = sync.OnceValue(func() map[reflect.Type]string {
	return map[reflect.Type]string{
		reflect.TypeFor[host.RDMAPort](): `
			State         state,open
			PhysicalState physical_state
			LID           lid
			SMLID         sm_lid
			LMC           lmc
			Capabilities  capability_flags,hex
			Netdev        netdev`,
		reflect.TypeFor[wire.Stat](): `
			Name  ,name
			Value ,value`,
		reflect.TypeFor[host.RDMASystem](): `
			NetnsMode netns_mode,open`,
		reflect.TypeFor[host.RDMAHolder](): `
			PID         ,name
			Contexts    contexts
			Regions     regions
			RegionBytes bytes
			QPs         qps`,
		reflect.TypeFor[host.LinkState](): `
			Link         link,open
			ExtState     ext_state
			ExtSubstate  ext_substate
			ExtDownCount ext_down_cnt`,
		reflect.TypeFor[host.LinkModes](): `
			Speed      speed,open
			Lanes      lanes
			Autoneg    autoneg
			Duplex     duplex
			Advertised advertised
			Peer       peer
			Supported  supported`,
		reflect.TypeFor[wire.Pause](): `
			Autoneg       autoneg,open
			RX            rx
			TX            tx
			TXFrames      tx_frames,counter
			RXFrames      rx_frames,counter
			TXStormEvents tx_pause_storm_events,counter`,
		reflect.TypeFor[wire.FEC](): `
			Active            active,open
			Corrected         corrected,counter
			Uncorrectable     uncorrectable,counter
			CorrectedBits     corrected_bits,counter
			LaneCorrected     corrected,lanes,counter
			LaneCorrectedBits corrected_bits,lanes,counter
			LaneUncorrectable uncorrectable,lanes,counter
			Histogram         bin/,counter`,
		reflect.TypeFor[wire.FECBin](): `
			Low    ,name
			High   -,name
			Blocks ,value
			Lanes  ,lanes`,
		reflect.TypeFor[host.HealthReporter](): `
			Bus        ,name,open
			Device     /,name
			Port       /,name
			Name       /,name
			State      state
			Errors     errors
			Recoveries recoveries`,
		reflect.TypeFor[dcb.Config](): `
			DCBX   dcbx,open
			PFC    pfc_
			ETS    ets_
			Buffer buffer_
			Trust  trust,enum=dcb
			Apps   app_,group,has=apps`,
		reflect.TypeFor[dcb.PFC](): `
			Capability  capability
			Enabled     enabled,hex
			MBC         mbc
			Delay       delay
			Requests    requests
			Indications indications`,
		reflect.TypeFor[dcb.ETS](): `
			Willing      willing
			Capability   capability
			CreditBased  cbs
			Bandwidth    bandwidth
			Algorithm    algorithm
			TrafficClass priority_class`,
		reflect.TypeFor[dcb.Buffer](): `
			Total  total
			Sizes  sizes
			Buffer priority`,
		reflect.TypeFor[dcb.App](): `
			Selector ,name,enum=dcb
			Priority _,name,max=7
			Protocol ,value`,
		reflect.TypeFor[host.IBLink](): `
			Own            own_,open
			SMLID          sm_lid
			Far            far_
			FarType        far_type
			FarPort        far_port
			FarLID         far_lid
			FarGUID        far_guid
			FarDescription far_description,escaped
			Requests       -`,
		reflect.TypeFor[host.IBEnd](): `
			Enabled
			Supported supported_
			Active    active_`,
		reflect.TypeFor[host.IBSets](): `
			Widths widths,hex
			Speeds speeds,hex`,
		reflect.TypeFor[host.IBCounters](): `
			Stats
			Wide  wide,word=1`,
		reflect.TypeFor[snapshot.IBFEC](): `
			Mode   mode
			Counts ,counter`,
		reflect.TypeFor[snapshot.FECCount](): `
			Name  ,name
			Lane  /lane,name,none=-1,max=255
			Value ,value`,
		reflect.TypeFor[snapshot.IBPortSettings](): `
			MTU     mtu,open
			DataVLs data_vls
			VLs     vls,max=15,len=16`,
		reflect.TypeFor[host.IBManager](): `
			State    state,open
			Priority priority
			Activity activity,counter
			GUID     guid`,
		reflect.TypeFor[accel.NVML](): `
			Driver driver,open
			CUDA   cuda
			GPUs   -
			Count  count`,
		reflect.TypeFor[accel.GPU](): `
			Index             -
			NUMANode          -
			UUID              uuid,open
			PCIAddress        pci_address
			Model             model
			Serial            serial
			Capability        compute_capability
			PCIeGeneration    pcie_generation
			PCIeMaxGeneration pcie_max_generation
			PCIeWidth         pcie_width
			PCIeMaxWidth      pcie_max_width
			NVLinks           nvlinks
			NVLinksUp         nvlinks_up
			C2CLinks          c2c_links
			Processes         processes
			LastXID           last_xid
			RecoveryAction    recovery_action
			Temperature       temperature
			Power             power
			Utilization       utilization
			MemoryUsed        memory_used
			MemoryTotal       memory_total
			BAR1Used          bar1_used
			BAR1Total         bar1_total
			Throttle          throttle
			PCIeTransmit      pcie_transmit_bytes,counter
			PCIeReceive       pcie_receive_bytes,counter
			PCIeReplays       pcie_replays,counter
			NVLinkTransmit    nvlink_transmit_bytes,counter
			NVLinkReceive     nvlink_receive_bytes,counter
			XIDs              xid_events,counter
			NVLinkErrors      nvlink_errors_,counter
			Fabric            fabric_
			RemappedRows      rows_`,
		reflect.TypeFor[accel.GPUFabric](): `
			State   state
			Status  status
			Health  health
			Summary summary
			Cluster cluster
			Clique  clique`,
		reflect.TypeFor[accel.RemappedRows](): `
			Correctable   correctable
			Uncorrectable uncorrectable
			Pending       pending
			Failed        failed`,
		reflect.TypeFor[accel.Process](): `
			PID          -
			Command      command
			Started      started,omitempty
			GPUs         gpus,omitempty
			Verbs        verbs,omitempty
			Cut          files_cut,word=1
			Hidden       hidden,word=1
			NCCL         nccl
			HasNCCL      nccl,word=unknown,any
			Plugin       net_plugin,word=1
			Mover        cache_mover,word=1
			Libraries    libraries,omitempty
			RDMANodes    rdma_nodes
			IMEXChannels imex_channels
			Capabilities capabilities,hex
			DMABUFs      dmabuf_
			LockedMemory locked_memory
			Unlimited    locked_memory,word=unlimited
			MayOpen      verbs_permitted
			Job          job
			Step         step
			Container    container
			Unit         unit
			Network      network
			Netdevs      netdevs
			Peers        peers
			PeersOver    peers_over
			JobName      job_name
			User         user
			Env          env_
			Conf         conf_,has=settings read
			Topology     topology
			Regions      -
			RegionBytes  -
			Namespace    -
			Pod          -`,
		reflect.TypeFor[accel.DMABUFs](): `
			Exporter ,name
			Buffers  buffers
			Bytes    bytes`,
		reflect.TypeFor[accel.Pod](): `
			Namespace ,name
			Name      /,name
			Devices   ,value`,
		reflect.TypeFor[LauncherSearch](): `
			Found
			Cut   ...,bare`,
		reflect.TypeFor[hostdata.Launcher](): `
			Name         ,name
			LockedMemory ,value
			Unlimited    ,value,word=unlimited
			Unread       ,value,after=!`,
		reflect.TypeFor[host.KernelLogReading](): `
			Lost    lost
			Dropped dropped
			Skipped skipped
			Events  ,columns`,
		reflect.TypeFor[host.KernelEvent](): `
			Seq   ,name
			At    at,micros
			Event
			Line  line,note`,
		reflect.TypeFor[kernellog.Event](): `
			Kind       kind
			Driver     driver
			PCIAddress pci
			Netdev     netdev
			Device     device
			Detail     detail`,
		reflect.TypeFor[accel.Trace](): `
			Complete      complete
			Since         age
			Begun         begun
			Lost          lost
			Host          observes,set=host
			Peermem       observes,set=peermem
			Events        observes,set=events
			QPEvents      observes,set=qp_events
			Missing       missing,each
			Registrations registration
			Totals        events
			Recent        event`,
		reflect.TypeFor[accel.Registration](): `
			PID       pid
			Device    device
			Function  function
			Mechanism mechanism
			Exporter  exporter
			Regions   regions
			Bytes     bytes`,
		reflect.TypeFor[accel.AsyncTotal](): `
			Device device
			Port   port
			Kind   kind
			Count  count`,
		reflect.TypeFor[accel.AsyncEvent](): `
			At     age
			Device device
			Kind   kind
			PID    pid
			Job    -`,
		reflect.TypeFor[qp.Pairs](): `
			Since  age
			Lost   lost
			Events pair_`,
		reflect.TypeFor[qp.PairEvent](): `
			Seq     ,name
			At      age
			Kind    kind
			Device  device
			Port    port
			QPN     qpn
			PID     pid
			Command command,escaped
			PeerQPN peer_qpn
			Peer    peer
			RoCE    roce
			Errno   errno
			Event   event`,
		reflect.TypeFor[qp.QueuePair](): `
			QPN     ,name
			PeerQPN peer
			Port    port
			PID     pid
			State   state`,
		reflect.TypeFor[qp.Connection](): `
			QPN  ,name
			Port port
			PID  pid
			Peer peer`,
	}
})

// RecordedField is a field of a type with its form.
type RecordedField struct {
	reflect.StructField
	form string
}

// notRecorded is the form of a field that is not recorded.
const notRecorded = "-"

// RecordedFields returns the recorded fields of a type in the order of its form. It panics if the type has no
// form, or one with a field that the type lacks.
func RecordedFields(t reflect.Type) (fields []RecordedField) {
	forms, ok := typeForms()[t]
	if !ok {
		panic("capture: " + t.String() + " has no form")
	}
	for line := range strings.Lines(forms) {
		name, form, _ := strings.Cut(strings.TrimSpace(line), " ")
		if form = strings.TrimSpace(form); name == "" || form == notRecorded {
			continue
		}
		f, ok := t.FieldByName(name)
		if !ok {
			panic("capture: the form of " + t.String() + " has " + name + ", which is no field of it")
		}
		fields = append(fields, RecordedField{f, form})
	}
	return fields
}
