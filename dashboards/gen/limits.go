package main

// Limits of rules that are drawn as lines: the defaults of internal/tune, to which a test of dashboards/ holds them.
const (
	limitCongestion      = 10000 // CNPs per million packets, congestion-ratio
	limitRetransmissions = 100   // per million packets, retransmission-ratio
	limitSlowReceiver    = 0.1   // of the time, slow-receiver-ratio
	limitStormSource     = 0.5   // of the time, storm-source-ratio
	limitPaused          = 0.3   // of the time, paused-ratio
	limitShortStorms     = 0.05  // of the time, short-storms-ratio
	limitLaneImbalance   = 3     // dB, lane-imbalance-db
	limitLaneDark        = -30   // dBm, lane-dark-dbm
)
