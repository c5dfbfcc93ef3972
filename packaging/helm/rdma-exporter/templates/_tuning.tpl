{{/* The text of a threshold with a value: {} the value, {%} a percentage, {-1} the value less 1. */}}
{{- define "rdma.place" -}}
{{- if regexMatch "[dhms]$" .value -}}
{{ .text | replace "{}" .value }}
{{- else -}}
{{ .text | replace "{}" .value | replace "{%}" (printf "%.6g%%" (mulf (float64 .value) 100)) | replace "{-1}" (printf "%.6g" (subf (float64 .value) 1)) }}
{{- end }}
{{- end }}

{{/* A threshold value in the notation of the rules, or an error. */}}
{{- define "rdma.threshold" -}}
{{- $v := .value | toString -}}
{{- if eq .unit "duration" -}}
{{- if not (regexMatch "^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$" $v) }}{{ fail (printf "prometheusRules.tuning.thresholds.%s: %s is no duration such as 2m" .name $v) }}{{ end -}}
{{ $v }}
{{- else -}}
{{- if not (regexMatch "^-?[0-9]+([.][0-9]+)?(e[-+]?[0-9]+)?%?$" $v) }}{{ fail (printf "prometheusRules.tuning.thresholds.%s: %s is no number" .name $v) }}{{ end -}}
{{- $n := float64 (trimSuffix "%" $v) }}{{ if hasSuffix "%" $v }}{{ $n = divf $n 100 }}{{ end -}}
{{- if and (eq .unit "count") (or (lt $n 1.0) (ne $n (floor $n))) }}{{ fail (printf "prometheusRules.tuning.thresholds.%s: %s is no whole number, 1 or more" .name $v) }}{{ end -}}
{{- if and (eq .unit "ratio") (or (le $n 0.0) (gt $n 1.0)) }}{{ fail (printf "prometheusRules.tuning.thresholds.%s: %s is not above 0 and at most 1" .name $v) }}{{ end -}}
{{ printf "%.6g" $n }}
{{- end }}
{{- end }}

{{/* Unknown names of alerts and thresholds are errors. */}}
{{- define "rdma.tuningNames" -}}
{{- $alerts := dict -}}
{{- range $path, $text := .Files.Glob "files/rules/{node,central}/*.rules.yml" }}
{{- range ($text | toString | fromYaml).groups }}{{ range .rules }}{{ with .alert }}{{ $_ := set $alerts . true }}{{ end }}{{ end }}{{ end }}
{{- end }}
{{- with .Values.prometheusRules.tuning }}
{{- range concat .leaveOut (keys .severities) }}
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
{{- $thresholds := .root.Files.Get "files/rules/thresholds.json" | fromJsonArray -}}
{{- $changed := list -}}
{{- range keys $t.severities }}{{ $changed = append $changed (splitList ":" . | first) }}{{ end -}}
{{- $selector := $t.selector | replace "$" "$$" -}}
{{- $groups := list -}}
{{- range $group := (fromYaml .text).groups }}
{{- $rules := list }}
{{- range $rule := $group.rules }}
{{- $name := $rule.alert | default $rule.record }}
{{- if not (has $rule.alert $t.leaveOut) }}
{{- $texts := $rule.annotations | default dict }}
{{- $_ := set $texts "expr" $rule.expr }}
{{- range $threshold := $thresholds }}
{{- if hasKey $t.thresholds $threshold.name }}
{{- $value := include "rdma.threshold" (dict "name" $threshold.name "unit" $threshold.unit "value" (get $t.thresholds $threshold.name)) }}
{{- range $threshold.places }}
{{- if eq .rule $name }}
{{- $old := include "rdma.place" (dict "text" .text "value" $threshold.default) }}
{{- $new := include "rdma.place" (dict "text" .text "value" $value) }}
{{- if hasPrefix "limit: " .text }}
{{- if eq (printf "limit: %q" ($texts.limit | default "")) $old }}{{ $_ := set $texts "limit" ($new | trimPrefix "limit: \"" | trimSuffix "\"") }}{{ end }}
{{- else if ne .text "for: {}" }}
{{- range $key, $text := $texts }}{{ $_ := set $texts $key (replace $old $new $text) }}{{ end }}
{{- else if eq (toString $rule.for) $threshold.default }}
{{- $_ := set $rule "for" $value }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- range $changed }}
{{- $reader := printf "(ALERTS(?:_FOR_STATE)?\\{alertname=[\"']%s[\"'][^}]*?)\\bseverity(=|!)" . }}
{{- range $key, $text := $texts }}{{ $_ := set $texts $key (regexReplaceAll $reader $text "${1}default_severity${2}") }}{{ end }}
{{- end }}
{{- $expr := $texts.expr }}
{{- if $selector }}
{{- if regexMatch "\\bjob[=!]" $selector }}{{ $expr = regexReplaceAll "\\bup\\{job=~\"[^\"]*\"\\}" $expr "up" }}{{ end }}
{{- $expr = regexReplaceAll "(^|[^:\\w\"'])(rdma_\\w+|up\\b)" $expr (printf "${1}${2}{%s}" $selector) | replace "}{" "," }}
{{- end }}
{{- $_ := set $rule "expr" $expr }}
{{- if $rule.alert }}
{{- $_ := unset $texts "expr" }}
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
