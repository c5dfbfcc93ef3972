// Package alerting evaluates the PromQL rules of rules/ on the collected metrics, so that the daemon, check, replays
// and tests have the same result as a central Prometheus with the same files. It uses the storage, query engine and
// rule evaluation of Prometheus, driven by the rounds of this process instead of timers.
package alerting
