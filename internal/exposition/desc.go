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
)
