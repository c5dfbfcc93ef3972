package rules

// Unit is the unit of a threshold.
type Unit string

// Units of thresholds.
const (
	Ratio  Unit = "ratio"  // 0.5, or 50%
	Count  Unit = "count"  // a whole number, 1 or more
	Number Unit = "number" // in the unit of the metric
)

// ThresholdMetric is the series by which a site overrides a threshold: rdma:threshold{name="flaps-per-hour"}.
const ThresholdMetric = "rdma:threshold"

// Threshold is a limit of the rules in which sites differ. The rules have the default, for where nothing records
// another value; limits of standards and of the hardware itself are constants.
type Threshold struct {
	Name    string  `json:"name"`
	Alert   string  `json:"alert"` // that it belongs to
	Unit    Unit    `json:"unit"`
	Default float64 `json:"default"`
	Why     string  `json:"why"`
}

// Thresholds returns all thresholds, in the order of the documentation.
func Thresholds() []Threshold {
	return []Threshold{
		{"flaps-per-hour", "RDMALinkFlapping", Count, 3, "one link loss is a touched cable or a switch restart, a second one its repair; three are a bad link"},
		{"flaps-per-day", "RDMALinkFlapping", Count, 10, "a job of several days is hit by each of them"},
		{"symbol-errors", "RDMALinkErrors", Count, 120, "in 1h, of a link without RS-FEC; InfiniBand specifies a bit error rate of 1e-12 or better"},
		{"receive-errors", "RDMALinkErrors", Count, 120, "packets in 1h, as symbol-errors: each has at least one"},
		{"link-error-recoveries", "RDMALinkErrors", Count, 2, "in 1h; a good link may retrain once"},
		{"transmit-discards", "RDMADiscards", Count, 120, "packets in 1h, as symbol-errors; a killed job discards a few"},
		{"aer-correctable", "RDMAPCIeErrors", Count, 150, "in 15m: ten per minute"},
		{"transceiver-hot-celsius", "RDMATransceiverHot", Number, 70, "of a transceiver without thresholds; they are specified for 0 to 70 °C (info)"},
		{"lane-dark-dbm", "RDMATransceiverOutOfRange", Number, -30, "0.001 mW: all receivers of these links need at least 20 times as much"},
		{"storm-source-ratio", "RDMAPFCStormSource", Ratio, 0.5, "of the time that a port sends PFC pause and receives almost nothing"},
		{"short-storms-ratio", "RDMAPFCStormSource", Ratio, 0.05, "of 5m: 3s per minute, which stall every collective"},
		{"slow-receiver-ratio", "RDMASlowReceiver", Ratio, 0.1, "of the time that a port sends PFC pause while it receives: a loss of 10% affects jobs"},
		{"storm-victim-ratio", "RDMAPFCStormVictim", Ratio, 0.9, "of the time that a port receives PFC pause: jobs are stalled (critical)"},
		{"paused-ratio", "RDMAPFCStormVictim", Ratio, 0.3, "of the time that a port receives PFC pause (info)"},
		{"lossy-traffic-ratio", "RDMATrafficOnLossyPriority", Ratio, 0.05, "of line rate; a few flows without a traffic class are not a fault"},
		{"retransmission-ratio", "RDMARetransmissions", Ratio, 0.0001, "events per transmitted packet: a loss rate of 0.01% reduces throughput measurably"},
		{"retries-windows", "RDMARetriesExceeded", Count, 3, "of the last six 5m windows; a killed job has one"},
		{"peers-unreachable-hosts", "RDMARetriesExceeded", Count, 10, "hosts at once; below that, each host has its own alert"},
		{"fleet-hosts", "RDMALinkDegraded", Count, 10, "with ports of the same kind; fewer are too few to compare"},
		{"straggler-ratio", "RDMAJobSlow", Ratio, 0.7, "of the throughput of the median port of a job, and of its own before; ports of one job differ by less than 10%"},
		{"fabric-transmit-wait-ratio", "RDMAFabricLinkErrors", Ratio, 0.5, "of 15m without credits on a port to a host; the steps of a job average out"},
		{"fabric-uplinks-ratio", "RDMAFabricOversubscribed", Ratio, 0.8, "of the remembered uplinks of a leaf switch; a single one of many is a link to repair"},
	}
}
