{{/* A threshold value as PromQL has it, or an error. */}}
{{- define "rdma.threshold" -}}
{{- $v := .value | toString -}}
{{- if not (regexMatch "^-?[0-9]+([.][0-9]+)?(e[-+]?[0-9]+)?%?$" $v) }}{{ fail (printf "prometheusRules.tuning.thresholds.%s: %s is no number" .name $v) }}{{ end -}}
{{- $n := float64 (trimSuffix "%" $v) }}{{ if hasSuffix "%" $v }}{{ $n = divf $n 100 }}{{ end -}}
{{- if and (eq .unit "count") (or (lt $n 1.0) (ne $n (floor $n))) }}{{ fail (printf "prometheusRules.tuning.thresholds.%s: %s is no whole number, 1 or more" .name $v) }}{{ end -}}
{{- if and (eq .unit "ratio") (or (le $n 0.0) (gt $n 1.0)) }}{{ fail (printf "prometheusRules.tuning.thresholds.%s: %s is not above 0 and at most 1" .name $v) }}{{ end -}}
{{ printf "%.6g" $n }}
{{- end }}

{{/* The rule file with the thresholds of .Values.prometheusRules.tuning, which the rules read in place of their defaults. */}}
{{- define "rdma.thresholds" -}}
groups:
  - name: rdma-thresholds
    rules:
      {{- range $threshold := .Files.Get "files/rules/thresholds.json" | fromJsonArray }}
      {{- if hasKey $.Values.prometheusRules.tuning.thresholds .name }}
      - record: rdma:threshold
        labels:
          name: {{ .name }}
        expr: vector({{ include "rdma.threshold" (dict "name" .name "unit" .unit "value" (get $.Values.prometheusRules.tuning.thresholds .name)) }})
      {{- end }}
      {{- end }}
{{- end }}

{{/* Unknown names of alerts and thresholds are errors. */}}
{{- define "rdma.tuningNames" -}}
{{- $alerts := dict -}}
{{- range $path, $text := .Files.Glob "files/rules/{node,central}/*.rules.yml" }}
{{- range ($text | toString | fromYaml).groups }}{{ range .rules }}{{ with .alert }}{{ $_ := set $alerts . true }}{{ end }}{{ end }}{{ end }}
{{- end }}
{{- with .Values.prometheusRules.tuning }}
{{- range concat .leaveOut (keys .severities) (keys .waits) }}
{{- if not (hasKey $alerts (splitList ":" . | first)) }}{{ fail (printf "prometheusRules.tuning: there is no alert %s" .) }}{{ end }}
{{- end }}
{{- $names := list }}
{{- range $.Files.Get "files/rules/thresholds.json" | fromJsonArray }}{{ $names = append $names .name }}{{ end }}
{{- range keys .thresholds }}
{{- if not (has . $names) }}{{ fail (printf "prometheusRules.tuning.thresholds: there is no threshold %s" .) }}{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{/* A rule file with .Values.prometheusRules.tuning, as `rdma_exporter rules --tune.*` writes it; empty where no rule is left. */}}
{{- define "rdma.tunedRules" -}}
{{- $t := .root.Values.prometheusRules.tuning -}}
{{- $changed := list -}}
{{- range keys $t.severities }}{{ $changed = append $changed (splitList ":" . | first) }}{{ end -}}
{{- $selector := $t.selector | replace "$" "$$" -}}
{{- $groups := list -}}
{{- range $group := (fromYaml .text).groups }}
{{- $rules := list }}
{{- range $rule := $group.rules }}
{{- if not (has $rule.alert $t.leaveOut) }}
{{- if $selector }}
{{- $expr := $rule.expr }}
{{- if regexMatch "\\bjob[=!]" $selector }}{{ $expr = regexReplaceAll "\\bup\\{job=~\"[^\"]*\"\\}" $expr "up" }}{{ end }}
{{- $_ := set $rule "expr" (regexReplaceAll "(^|[^:\\w\"'])(rdma_\\w+|up\\b)" $expr (printf "${1}${2}{%s}" $selector) | replace "}{" ",") }}
{{- end }}
{{- if $rule.alert }}
{{- with get $t.waits $rule.alert }}{{ $_ := set $rule "for" . }}{{ end }}
{{- $labels := merge (dict) $rule.labels $t.labels }}
{{- if has $rule.alert $changed }}
{{- $shipped := $labels.severity }}
{{- $severity := get $t.severities (printf "%s:%s" $rule.alert $shipped) | default (get $t.severities $rule.alert) | default $shipped }}
{{- $_ := set $labels "default_severity" $shipped }}
{{- $_ := set $labels "severity" $severity }}
{{- if and (eq $severity "info") (ne $shipped "info") }}{{ $_ := set $labels "drain" "no" }}{{ end }}
{{- end }}
{{- $_ := set $rule "labels" $labels }}
{{- end }}
{{- $rules = append $rules $rule }}
{{- end }}
{{- end }}
{{- if $rules }}{{ $groups = append $groups (set $group "rules" $rules) }}{{ end }}
{{- end }}
{{- if $groups }}{{ toYaml (dict "groups" $groups) }}{{ end }}
{{- end }}
