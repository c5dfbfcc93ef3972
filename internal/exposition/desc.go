package exposition

// Desc describes a metric family. docs/metrics.md is generated from the Descs.
type Desc struct {
	Name   string
	Help   string
	Type   Type
	Labels []string
	Unit   string // bytes, seconds, …; empty for a count or a state
	Scope  Scope
	Source string // kernel file, attribute or standard of the value
	// Bounds are the upper bounds of a histogram's buckets, ascending, without +Inf.
	Bounds []float64
	// Beside is a metric whose presence means that absence of this one is normal; empty: absence is not known to be
	// normal.
	Beside string
	// Of selects what the metric is about, as NAME or NAME{label="value"} (possibly the metric itself). A host without
	// such a sample has nothing to which the metric applies. Empty: an RDMA device or a GPU, according to the scope.
	Of string
	// Never selects objects that would have the metric if the kernel exposed it. A host with such a sample is partly not
	// covered.
	Never string
	// Unknown are selectors of samples which mean that the value could not be read, by the requested value of the label
	// state or reason; the empty key applies to all.
	Unknown map[string][]string
	// Asks is the source of the metric (a source.Source by name), to explain its absence.
	Asks string
	// AskedLabels are the labels that require Asks, if the others are available without it.
	AskedLabels []string
	// Sparse metrics are left out on InfiniBand ports while 0.
	Sparse bool
}

// Type is a metric type of the exposition format.
type Type uint8

// The metric types in use.
const (
	Gauge Type = iota
	Counter
	Untyped
	Histogram
)

func (t Type) String() string { return [...]string{"gauge", "counter", "untyped", "histogram"}[t] }

// Scope is what a value belongs to. Functions that share a physical port have the same port counters.
type Scope string

// The scopes.
const (
	ScopeExporter Scope = "exporter"
	ScopeHost     Scope = "host"
	ScopeDevice   Scope = "device"
	ScopePort     Scope = "port"
	ScopeFunction Scope = "function" // traffic and errors of one PCI function, not of the physical port
	ScopeBond     Scope = "bond"     // all members of a RoCE LAG together
	ScopeGPU      Scope = "gpu"
	ScopeFabric   Scope = "fabric" // the subnet, or a node or link in it, as of fabric mode
)
