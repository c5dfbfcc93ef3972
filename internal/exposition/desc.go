package exposition

// Desc describes a metric family. docs/metrics.md is made from these.
type Desc struct {
	Name   string
	Help   string
	Type   Type
	Labels []string
	Unit   string // bytes, seconds, …; empty for a count or a state
	Scope  Scope
	Source string // the kernel file, attribute or standard that the value comes from
	// Bounds are the upper bounds of a histogram's buckets, rising, without the last one, which has no end.
	Bounds []float64
	// Beside is a metric beside which the absence of this one means that there is nothing to tell; empty: absence is not known to
	// mean that.
	Beside string
	// Of is what the metric tells about, a selector NAME or NAME{label="value"}: on a host without a sample of it there is nothing that
	// could have this metric. That may be the metric itself. Empty: an RDMA device, or a GPU, where the scope is that of one or of its parts.
	Of string
	// Never is a selector of what would have the metric if the kernel told: where it has a sample, a part of the host goes unseen.
	Never string
	// Unknown are selectors of samples that say that the value could not be read, by the value of the label state that is asked for; under
	// the empty one those for any.
	Unknown map[string][]string
	// Asks is the source, host.Source by its name, that the metric comes from, so that its absence can be explained.
	Asks string
	// AskedLabels are those of its labels that Asks is for, where the others are had without it.
	AskedLabels []string
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

// Scope says what a value belongs to; functions that share a wire show the same wire counters.
type Scope string

// The scopes.
const (
	ScopeExporter Scope = "exporter"
	ScopeHost     Scope = "host"
	ScopeDevice   Scope = "device"
	ScopePort     Scope = "port"
	ScopeFunction Scope = "function" // traffic and errors of one PCI function, not of the wire
	ScopeBond     Scope = "bond"     // of all members of a RoCE LAG together
	ScopeGPU      Scope = "gpu"
	ScopeFabric   Scope = "fabric" // the subnet, or a node or link in it, as fabric mode sees it
)
