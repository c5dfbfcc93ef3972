// Package alerting judges what the collectors saw with the PromQL of rules/, so that the daemon, check, replays and tests
// decide exactly as a central Prometheus does that loads the same files. It is Prometheus' own store, query engine and rule
// evaluation, driven by the rounds of this process instead of their own clocks.
package alerting
