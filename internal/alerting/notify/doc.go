// Package notify sends alerts to Alertmanagers: each alert in its last state, to each of them independently of the
// others, by the clock of the one that receives it.
package notify
