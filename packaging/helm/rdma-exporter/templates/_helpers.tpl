{{- define "rdma.name" -}}
{{ .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "rdma.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 63 | trimSuffix "-" }}
{{- else if contains (include "rdma.name" .) .Release.Name -}}
{{ .Release.Name | trunc 63 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name (include "rdma.name" .) | trunc 63 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "rdma.selector" -}}
app.kubernetes.io/name: {{ include "rdma.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "rdma.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{ include "rdma.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "rdma.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "rdma.fullname" .) }}{{ else }}{{ .Values.serviceAccount.name | default "default" }}{{ end }}
{{- end }}

{{- define "rdma.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* Capabilities added by .Values.privileges, as a YAML list. */}}
{{- define "rdma.capabilities" -}}
{{- with .Values.privileges }}
{{- if .optics }}
- NET_ADMIN
{{- end }}
{{- if .processes }}
- SYS_PTRACE
- DAC_READ_SEARCH
{{- end }}
{{- if .kernelLog }}
- SYSLOG
{{- end }}
{{- if .configurationSpace }}
- SYS_ADMIN
{{- end }}
{{- if .ebpf }}
- BPF
- PERFMON
{{- end }}
{{- end }}
{{- end }}

{{/* uid 0 if there are capabilities: in a container added ones only take effect for uid 0. The kubelet's socket permits uid 0 only. */}}
{{- define "rdma.uid" -}}
{{ if or (include "rdma.capabilities" .) .Values.privileges.podNames }}0{{ else }}65532{{ end }}
{{- end }}

{{/* 80% of the memory limit, in MiB: the rest is memory that Go does not account for. */}}
{{- define "rdma.gomemlimit" -}}
{{- $limit := .Values.resources.limits.memory -}}
{{- $n := regexFind "^[0-9]+" $limit | int -}}
{{- div (mul (ternary (mul $n 1024) $n (hasSuffix "Gi" $limit)) 80) 100 }}MiB
{{- end }}

{{/* Labels of the exporter's own alerts, equal to those of a central Prometheus. */}}
{{- define "rdma.relabelings" -}}
- {sourceLabels: [__meta_kubernetes_pod_node_name], targetLabel: instance, replacement: "$1:{{ .Values.port }}"}
- {targetLabel: job, replacement: rdma_exporter}
{{- with .Values.monitor.relabelings }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "rdma.endpoint" -}}
port: metrics
{{- with .Values.monitor }}
interval: {{ .interval }}
scrapeTimeout: {{ .scrapeTimeout }}
scheme: {{ .scheme }}
{{- with .tlsConfig }}
tlsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .basicAuth }}
basicAuth:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
relabelings:
  {{- include "rdma.relabelings" . | nindent 2 }}
{{- with .Values.monitor.metricRelabelings }}
metricRelabelings:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* A probe. With TLS or authentication: rdma_exporter healthy, which takes the address from its own command line and accepts 401. */}}
{{- define "rdma.probe" -}}
{{- if .root.Values.web.secretName -}}
exec:
  command: [/usr/bin/rdma_exporter, healthy{{ if .ready }}, --ready{{ end }}, --timeout=4s]
{{- else -}}
httpGet: {path: {{ ternary "/-/ready" "/-/healthy" .ready }}, port: metrics}
{{- end }}
timeoutSeconds: 5
{{- end }}

{{/* http_config for Alertmanagers; empty if none is configured. */}}
{{- define "rdma.alertmanagerConfig" -}}
{{- with .Values.alerting }}
{{- if and .enabled .alertmanagers .alertmanagerConfig }}
{{- toYaml .alertmanagerConfig }}
{{- end }}
{{- end }}
{{- end }}

{{/* URL of the runbook of an alert, as `rdma_exporter --runbook-url`. */}}
{{- define "rdma.runbook" -}}
{{- if contains "%s" .root.Values.runbookURL -}}
{{ .root.Values.runbookURL | replace "%s" .name }}
{{- else -}}
{{ .root.Values.runbookURL | trimSuffix "/" }}/{{ .name }}
{{- end }}
{{- end }}

{{/* A rule file with links to runbooks, or without the annotation if there is no URL. */}}
{{- define "rdma.rules" -}}
{{- $text := .root.Files.Get .path -}}
{{- if .root.Values.runbookURL -}}
{{- regexReplaceAll "( runbook_url: )docs/runbooks/(\\w+)\\.md" $text (printf "${1}%s" (include "rdma.runbook" (dict "root" .root "name" "${2}"))) }}
{{- else -}}
{{- regexReplaceAll " +runbook_url: docs/runbooks/\\w+\\.md\n" $text "" }}
{{- end }}
{{- end }}

{{/* A dashboard with the addresses of runbooks replaced by URLs. */}}
{{- define "rdma.dashboard" -}}
{{- $text := .root.Files.Get .path -}}
{{- if .root.Values.runbookURL -}}
{{- $url := include "rdma.runbook" (dict "root" .root "name" "${__value.raw}") -}}
{{- regexReplaceAll "\"http://[^\"]*/runbooks/\\$\\{__value\\.raw\\}\"" $text (printf "\"%s\"" ($url | replace "$" "$$")) }}
{{- else -}}
{{- $text }}
{{- end }}
{{- end }}
