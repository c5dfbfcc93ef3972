// Rules and dashboards as a monitoring mixin. The files of rules/ and dashboards/ are imported unchanged and must be present.
local tuning = import 'tuning.libsonnet';

local files = {
  node: [
    importstr '../../rules/node/link.rules.yml',
    importstr '../../rules/node/device.rules.yml',
    importstr '../../rules/node/exporter.rules.yml',
    importstr '../../rules/node/exporter_state.rules.yml',
    importstr '../../rules/node/gpu.rules.yml',
    importstr '../../rules/node/gpudirect.rules.yml',
    importstr '../../rules/node/health.rules.yml',
    importstr '../../rules/node/job_ports.rules.yml',
    importstr '../../rules/node/kernel_log.rules.yml',
    importstr '../../rules/node/link_ber.rules.yml',
    importstr '../../rules/node/link_changes.rules.yml',
    importstr '../../rules/node/link_errors.rules.yml',
    importstr '../../rules/node/link_rate.rules.yml',
    importstr '../../rules/node/link_trend.rules.yml',
    importstr '../../rules/node/maintenance.rules.yml',
    importstr '../../rules/node/optics.rules.yml',
    importstr '../../rules/node/optics_drift.rules.yml',
    importstr '../../rules/node/optics_lanes.rules.yml',
    importstr '../../rules/node/pcie.rules.yml',
    importstr '../../rules/node/pcie_gpu.rules.yml',
    importstr '../../rules/node/pins.rules.yml',
    importstr '../../rules/node/roce.rules.yml',
    importstr '../../rules/node/roce_lossless.rules.yml',
    importstr '../../rules/node/roce_transport.rules.yml',
    importstr '../../rules/node/siblings.rules.yml',
    importstr '../../rules/node/symptoms.rules.yml',
    importstr '../../rules/node/faults.rules.yml',
    importstr '../../rules/node/alerts.rules.yml',
    importstr '../../rules/node/verdict.rules.yml',
  ],
  central: [
    importstr '../../rules/central/leaf.rules.yml',
    importstr '../../rules/central/dcgm.rules.yml',
    importstr '../../rules/central/fabric.rules.yml',
    importstr '../../rules/central/fabric_alerts.rules.yml',
    importstr '../../rules/central/fabric_ber.rules.yml',
    importstr '../../rules/central/fabric_congestion.rules.yml',
    importstr '../../rules/central/fabric_maintenance.rules.yml',
    importstr '../../rules/central/fleet.rules.yml',
    importstr '../../rules/central/fleet_alerts.rules.yml',
    importstr '../../rules/central/fleet_common.rules.yml',
    importstr '../../rules/central/fleet_settings.rules.yml',
    importstr '../../rules/central/fleet_symptoms.rules.yml',
    importstr '../../rules/central/hosts.rules.yml',
    importstr '../../rules/central/jobs.rules.yml',
    importstr '../../rules/central/leaf_settings.rules.yml',
    importstr '../../rules/central/outliers.rules.yml',
    importstr '../../rules/central/peers.rules.yml',
    importstr '../../rules/central/switches.rules.yml',
    importstr '../../rules/central/targets.rules.yml',
  ],
};

{
  _config:: {
    // Rule sets: node for the metrics of one host, central for rules over several hosts.
    node: true,
    central: true,
    // Label matchers for all series of the exporter and up: 'job="rdma",cluster=~"a|b"'. Matchers for job first.
    selector: '',
    // Base URL of a copy of docs/runbooks; alerts link to URL/ALERT.md. Empty: no runbook_url.
    runbookURL: '',
    // Alerts to leave out, in all their severities.
    leaveOut: [],
    // By ALERT or ALERT:SEVERITY: { RDMAPortDown: 'warning', 'RDMALinkErrors:warning': 'info' }.
    severities: {},
    // How long alerts wait before they fire: { RDMAPortDown: '5m' }.
    waits: {},
    // By the names of docs/alerts.md: { 'flaps-per-hour': 5, 'storm-source-ratio': '40%' }.
    thresholds: {},
    // Added to every alert: { team: 'fabric' }.
    labels: {},
  },

  // Groups include recording rules: alerts read recordings of their own group.
  prometheusAlerts+:: {
    groups+: tuning.groups(
      (if $._config.node then files.node else []) + (if $._config.central then files.central else []), $._config
    ),
  },

  // Empty: no group has recording rules only.
  prometheusRules+:: { groups+: [] },

  grafanaDashboards+:: {
    'rdma-fabric.json': import '../../dashboards/fabric.json',
    'rdma-gpudirect.json': import '../../dashboards/gpudirect.json',
    'rdma-node.json': import '../../dashboards/node.json',
    'rdma-optics.json': import '../../dashboards/optics.json',
    'rdma-job.json': import '../../dashboards/job.json',
    'rdma-roce.json': import '../../dashboards/roce.json',
    'rdma-subnet.json': import '../../dashboards/subnet.json',
  },
}
