package check

// Kinds of sources of a report.
const (
	SourceDaemon      = "daemon"       // the exporter named by --daemon
	SourceLocalDaemon = "local_daemon" // the exporter that runs on this host
	SourceOneOff      = "one_off"      // an evaluation of this host by the command
	SourceReplay      = "replay"       // an evaluation of a capture by the command
)

// Source is the origin of a report. The command that prints the report sets it; the answer of an exporter has none.
type Source struct {
	Kind   string `json:"kind"`
	URL    string `json:"url,omitempty"`    // of the exporter, without password
	Reason string `json:"reason,omitempty"` // one_off: why the exporter on this host was not used
}

// From returns the report with a source.
func (r Report) From(s Source) Report {
	r.Source = &s
	return r
}
