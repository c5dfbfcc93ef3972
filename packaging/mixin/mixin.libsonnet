// Rules and dashboards as a monitoring mixin. Nothing is written twice: the files of rules/ and dashboards/ are imported as they are, so that the
// repository is needed as a whole.
local tuning = import 'tuning.libsonnet';

local files = {
  node: [
    importstr '../../rules/node/link.rules.yml',
    importstr '../../rules/node/backpressure.rules.yml',
    importstr '../../rules/node/device.rules.yml',
    importstr '../../rules/node/exporter.rules.yml',
    importstr '../../rules/node/exporter_state.rules.yml',
    importstr '../../rules/node/gpu.rules.yml',
    importstr '../../rules/node/gpu_xid.rules.yml',
    importstr '../../rules/node/gpudirect.rules.yml',
    importstr '../../rules/node/health.rules.yml',
    importstr '../../rules/node/link_changes.rules.yml',
    importstr '../../rules/node/link_errors.rules.yml',
    importstr '../../rules/node/link_rate.rules.yml',
    importstr '../../rules/node/maintenance.rules.yml',
    importstr '../../rules/node/optics.rules.yml',
    importstr '../../rules/node/optics_lanes.rules.yml',
    importstr '../../rules/node/pcie.rules.yml',
    importstr '../../rules/node/pcie_gpu.rules.yml',
    importstr '../../rules/node/pins.rules.yml',
    importstr '../../rules/node/roce.rules.yml',
    importstr '../../rules/node/roce_lossless.rules.yml',
    importstr '../../rules/node/roce_transport.rules.yml',
    importstr '../../rules/node/siblings.rules.yml',
    importstr '../../rules/node/chains.rules.yml',
    importstr '../../rules/node/whole_host.rules.yml',
    importstr '../../rules/node/verdict.rules.yml',
  ],
  central: [
    importstr '../../rules/central/dcgm.rules.yml',
    importstr '../../rules/central/exporter_down.rules.yml',
    importstr '../../rules/central/fabric.rules.yml',
    importstr '../../rules/central/fabric_maintenance.rules.yml',
    importstr '../../rules/central/fleet.rules.yml',
    importstr '../../rules/central/hosts.rules.yml',
    importstr '../../rules/central/switch.rules.yml',
    importstr '../../rules/central/targets.rules.yml',
  ],
};

{
  _config:: {
    // Which rules: node for what one host's metrics suffice for, central for what needs many.
    node: true,
    central: true,
    // Label matchers for all series of the exporter and up: 'job="rdma",cluster=~"a|b"'. Matchers for job first.
    selector: '',
    // Where runbooks are read: a copy of docs/runbooks, or http://NODE:10879/docs/runbooks of an exporter. Without it no alert has a runbook_url.
    runbookURL: '',
    // Alerts to leave out, in all their severities.
    leaveOut: [],
    // By ALERT or ALERT:SEVERITY: { RDMAPortDown: 'warning', 'RDMALinkErrors:warning': 'info' }.
    severities: {},
    // By the names of docs/alerts.md: { 'port-down-for': '5m', 'storm-source-ratio': '40%' }.
    thresholds: {},
    // Of every alert: { team: 'fabric' }.
    labels: {},
  },

  // Groups are whole, recording rules included: an alert reads what its group has recorded just before.
  prometheusAlerts+:: {
    groups+: tuning.groups(
      (if $._config.node then files.node else []) + (if $._config.central then files.central else []), $._config
    ),
  },

  // No group records only.
  prometheusRules+:: { groups+: [] },

  grafanaDashboards+:: {
    'rdma-fabric.json': import '../../dashboards/fabric.json',
    'rdma-gpudirect.json': import '../../dashboards/gpudirect.json',
    'rdma-node.json': import '../../dashboards/node.json',
    'rdma-optics.json': import '../../dashboards/optics.json',
    'rdma-roce.json': import '../../dashboards/roce.json',
    'rdma-subnet.json': import '../../dashboards/subnet.json',
  },
}
