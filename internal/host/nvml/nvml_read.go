package nvml

import (
	"errors"
	"slices"

	"rdma_exporter/internal/host/access"
	"rdma_exporter/internal/snapshot/accel"
	"rdma_exporter/internal/snapshot/wire"
)

// nvmlSeat is a GPU between Init and Shutdown. Only the NVML thread uses it.
type nvmlSeat struct {
	device   nvmlDevice
	identity accel.GPU // constant properties
	links    int       // number of NVLinks
	// PCIe traffic since NVML was initialised, if the driver has no counter.
	transmitted, received uint64
}

// nvmlReading collects the figures of one GPU and the errors of failed ones.
type nvmlReading struct {
	*accel.GPU
	device nvmlDevice
	errs   []error
}

// keep reports whether there is no error. One is recorded unless the driver or the GPU lacks the feature.
func (r *nvmlReading) keep(err error) bool {
	if err != nil && access.ReasonOf(err) != access.Unsupported {
		r.errs = append(r.errs, err)
	}
	return err == nil
}

func (r *nvmlReading) text(function string) string {
	s, err := r.device.Text(function)
	if !r.keep(err) {
		return ""
	}
	return s
}

// numbers returns the result of the first function that the library has; nil if none.
func (r *nvmlReading) numbers(functions ...string) []uint64 {
	for i, f := range functions {
		n, err := r.device.Numbers(f)
		if i < len(functions)-1 && errors.Is(err, nvmlFunctionNotFound) {
			continue
		}
		if r.keep(err) {
			return n
		}
		return nil
	}
	return nil
}

func (r *nvmlReading) number(functions ...string) *uint64 {
	if n := r.numbers(functions...); n != nil {
		return &n[0]
	}
	return nil
}

// scaled returns a number of the library divided by parts, the number of its units in ours.
func (r *nvmlReading) scaled(function string, parts float64) *float64 {
	n := r.number(function)
	if n == nil {
		return nil
	}
	return new(float64(*n) / parts)
}

// readSeat reads the constant properties of a GPU.
func readSeat(index int, device nvmlDevice) (*nvmlSeat, []error) {
	s := &nvmlSeat{device: device, identity: accel.GPU{Index: index}}
	r := nvmlReading{GPU: &s.identity, device: device}
	r.UUID = r.text("nvmlDeviceGetUUID")
	r.PCIAddress = pciAddress(r.text("nvmlDeviceGetPciInfo"))
	r.Model = r.text("nvmlDeviceGetName")
	r.Serial = r.text("nvmlDeviceGetSerial")
	if n := r.numbers("nvmlDeviceGetCudaComputeCapability"); n != nil {
		r.Capability = computeCapability(n)
	}
	r.PCIeMaxGeneration = r.number("nvmlDeviceGetMaxPcieLinkGeneration")
	r.PCIeMaxWidth = r.number("nvmlDeviceGetMaxPcieLinkWidth")
	s.countLinks(&r)
	return s, r.errs
}

// nvmlMaxLinks limits the number of NVLinks: NVML_NVLINK_MAX_LINKS is 18; this leaves room for future GPUs.
const nvmlMaxLinks = 72

// countLinks queries the number of NVLinks and of links to a Grace processor.
func (s *nvmlSeat) countLinks(r *nvmlReading) {
	fields := []nvmlField{{ID: 91}, {ID: 170}} // NVLINK_LINK_COUNT, C2C_LINK_COUNT
	if !r.keep(s.device.Fields(fields)) {
		return
	}
	for i, to := range []**uint64{&r.NVLinks, &r.C2CLinks} {
		if r.keep(fields[i].Err) {
			*to = &fields[i].Value
		}
	}
	if r.NVLinks != nil {
		s.links = int(min(*r.NVLinks, nvmlMaxLinks))
	}
}

// read reads the figures of a GPU. It stops at a lost GPU.
func (s *nvmlSeat) read(full bool) (accel.GPU, []error) {
	g := s.identity
	r := nvmlReading{GPU: &g, device: s.device}
	for _, part := range []func(*nvmlReading){
		s.readPCIe, s.readFields, s.readNVLinks, readGPUFabric, s.readTraffic, readProcesses, readWork,
	} {
		if part(&r); nvmlDead(r.errs) != nil {
			return g, r.errs
		}
	}
	if full {
		readRest(&r)
	}
	return g, r.errs
}

// nvmlDead is the error after which a GPU, or the library, does not answer until NVML is initialised again.
func nvmlDead(errs []error) error {
	for _, err := range errs {
		if errors.Is(err, nvmlGPUIsLost) || errors.Is(err, nvmlUninitialized) {
			return err
		}
	}
	return nil
}

func (s *nvmlSeat) readPCIe(r *nvmlReading) {
	r.PCIeGeneration = r.number("nvmlDeviceGetCurrPcieLinkGeneration")
	r.PCIeWidth = r.number("nvmlDeviceGetCurrPcieLinkWidth")
}

// nvmlFields are the figures from field values, with the scale to their unit.
var nvmlFields = []struct {
	id, scope uint32
	scale     uint64
	wide      bool // 32 bits are not enough: they wrap many times between two readings
	to        func(*accel.GPU) **uint64
}{
	{94, 0, 1, false, func(g *accel.GPU) **uint64 { return &g.PCIeReplays }},                  // PCIE_REPLAY_COUNTER
	{197, 0, 1, true, func(g *accel.GPU) **uint64 { return &g.PCIeTransmit }},                 // PCIE_COUNT_TX_BYTES
	{198, 0, 1, true, func(g *accel.GPU) **uint64 { return &g.PCIeReceive }},                  // PCIE_COUNT_RX_BYTES
	{230, 0, 1, false, func(g *accel.GPU) **uint64 { return &g.RecoveryAction }},              // GET_GPU_RECOVERY_ACTION
	{138, nvmlAllLinks, 1024, true, func(g *accel.GPU) **uint64 { return &g.NVLinkTransmit }}, // NVLINK_THROUGHPUT_DATA_TX, KiB
	{139, nvmlAllLinks, 1024, true, func(g *accel.GPU) **uint64 { return &g.NVLinkReceive }},  // NVLINK_THROUGHPUT_DATA_RX, KiB
}

// nvmlLinkErrors are the errors of all NVLinks of a GPU by kind: of Hopper, its predecessors, and Blackwell. Of two
// entries of a kind, the first that the GPU has is used.
var nvmlLinkErrors = []struct {
	kind      string
	id, scope uint32
}{
	{"replay", 161, nvmlAllLinks},          // NVLINK_ERROR_DL_REPLAY
	{"recovery", 162, nvmlAllLinks},        // NVLINK_ERROR_DL_RECOVERY
	{"crc", 163, nvmlAllLinks},             // NVLINK_ERROR_DL_CRC
	{"crc_flit", 38, 0},                    // NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL
	{"crc_data", 45, 0},                    // NVLINK_CRC_DATA_ERROR_COUNT_TOTAL
	{"replay", 52, 0},                      // NVLINK_REPLAY_ERROR_COUNT_TOTAL
	{"recovery", 59, 0},                    // NVLINK_RECOVERY_ERROR_COUNT_TOTAL
	{"receive", 208, nvmlAllLinks},         // NVLINK_COUNT_RCV_ERRORS
	{"recovery_failed", 214, nvmlAllLinks}, // NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS
}

// nvmlLinkState is NVLINK_GET_STATE, per link, and the values of NVML_NVLINK_STATE_* for a link that carries traffic.
const (
	nvmlLinkState  = 165
	nvmlLinkActive = 1
	nvmlLinkSleeps = 2
)

// fields returns the field values to query, all in one call: nvmlFields, nvmlLinkErrors, and the states of the NVLinks.
func (s *nvmlSeat) fields() []nvmlField {
	out := make([]nvmlField, 0, len(nvmlFields)+len(nvmlLinkErrors)+s.links)
	for _, f := range nvmlFields {
		out = append(out, nvmlField{ID: f.id, Scope: f.scope})
	}
	if s.links == 0 {
		return out
	}
	for _, e := range nvmlLinkErrors {
		out = append(out, nvmlField{ID: e.id, Scope: e.scope})
	}
	for i := range s.links {
		out = append(out, nvmlField{ID: nvmlLinkState, Scope: uint32(i)})
	}
	return out
}

func (s *nvmlSeat) readFields(r *nvmlReading) {
	fields := s.fields()
	if !r.keep(s.device.Fields(fields)) {
		return
	}
	for i, f := range nvmlFields {
		if r.keep(fields[i].Err) && !(f.wide && fields[i].Narrow) {
			*f.to(r.GPU) = new(fields[i].Value * f.scale)
		}
	}
	if s.links == 0 { // values of a GPU without NVLinks are meaningless
		r.NVLinkTransmit, r.NVLinkReceive = nil, nil
		return
	}
	fields = fields[len(nvmlFields):]
	for i, e := range nvmlLinkErrors {
		if known := slices.ContainsFunc(r.NVLinkErrors, func(s wire.Stat) bool { return s.Name == e.kind }); !known &&
			r.keep(fields[i].Err) {
			r.NVLinkErrors = append(r.NVLinkErrors, wire.Stat{Name: e.kind, Value: fields[i].Value})
		}
	}
	r.NVLinksUp = linksUp(r, fields[len(nvmlLinkErrors):])
}

// linksUp counts the active links; nil if a state is unknown.
func linksUp(r *nvmlReading, states []nvmlField) *uint64 {
	up := uint64(0)
	for _, f := range states {
		if !r.keep(f.Err) {
			return nil
		}
		if f.Value == nvmlLinkActive || f.Value == nvmlLinkSleeps {
			up++
		}
	}
	return &up
}

// readNVLinks counts the NVLinks that are up if the driver has no field value for it.
func (s *nvmlSeat) readNVLinks(r *nvmlReading) {
	if s.links == 0 || r.NVLinksUp != nil {
		return
	}
	up := uint64(0)
	for i := range s.links {
		active, err := s.device.NVLinkActive(i)
		if !r.keep(err) {
			return
		}
		if active {
			up++
		}
	}
	r.NVLinksUp = &up
}

// readGPUFabric skips GPUs that cannot be on an NVLink fabric.
func readGPUFabric(r *nvmlReading) {
	f, err := r.device.GPUFabric()
	if r.keep(err) && f.State != 0 {
		r.Fabric = &f
	}
}

// readTraffic accumulates the traffic measured by the performance monitor if the driver has no 64-bit counters.
func (s *nvmlSeat) readTraffic(r *nvmlReading) {
	if r.PCIeTransmit != nil && r.PCIeReceive != nil {
		return
	}
	transmitted, received, err := s.device.Traffic()
	if !r.keep(err) {
		return
	}
	s.transmitted, s.received = s.transmitted+transmitted, s.received+received
	r.PCIeTransmit, r.PCIeReceive = new(s.transmitted), new(s.received)
}

func readProcesses(r *nvmlReading) {
	pids := r.numbers("nvmlDeviceGetComputeRunningProcesses")
	if pids == nil {
		return
	}
	r.Processes = []int{}
	for _, pid := range pids {
		r.Processes = append(r.Processes, int(pid))
	}
}

// readWork reads what tells work from waiting for peers.
func readWork(r *nvmlReading) {
	r.Power = r.scaled("nvmlDeviceGetPowerUsage", 1000)            // milliwatts
	r.Utilization = r.scaled("nvmlDeviceGetUtilizationRates", 100) // percent
}

// readRest reads what is unrelated to NVLink, PCIe, errors and jobs.
func readRest(r *nvmlReading) {
	r.Temperature = r.scaled("nvmlDeviceGetTemperature", 1)
	if m := r.numbers("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo"); m != nil {
		r.MemoryUsed, r.MemoryTotal = &m[0], &m[1]
	}
	if m := r.numbers("nvmlDeviceGetBAR1MemoryInfo"); m != nil {
		r.BAR1Used, r.BAR1Total = &m[0], &m[1]
	}
	r.Throttle = r.number("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
	if n := r.numbers("nvmlDeviceGetRemappedRows"); n != nil {
		r.RemappedRows = &accel.RemappedRows{Correctable: n[0], Uncorrectable: n[1], Pending: n[2] != 0, Failed: n[3] != 0}
	}
}
