{{/* Sizes and the memory of containers. */}}

{{/* Returns the bytes of a size of Nuthatch or a quantity of Kubernetes: dict "size" "place".
*/}}
{{- define "nuthatch.bytes" -}}
{{- $size := toString .size }}
{{- $number := regexFind "^[0-9]+" $size }}
{{- $unit := trimPrefix $number $size }}
{{- $units := dict "" 0 "B" 0 "Ki" 1 "KiB" 1 "Mi" 2 "MiB" 2 "Gi" 3 "GiB" 3 "Ti" 4 "TiB" 4 }}
{{- if or (not $number) (not (hasKey $units $unit)) }}
{{- fail (printf "%s: expected a size such as 512MiB or 4Gi, found %q" .place $size) }}
{{- end }}
{{- $bytes := int64 $number }}
{{- range until (int (get $units $unit)) }}
{{- $bytes = mul $bytes 1024 }}
{{- end }}
{{- $bytes }}
{{- end }}

{{/* Returns a quantity of at least so many bytes, in whole mebibytes. */}}
{{- define "nuthatch.mebibytes" -}}
{{ div (add (int64 .) 1048575) 1048576 }}Mi
{{- end }}

{{/* Returns resources with a memory limit: dict "place" "needed" (bytes) "resources". Refuses a
limit below what the container needs. */}}
{{- define "nuthatch.resources" -}}
{{- $limits := .resources.limits | default dict }}
{{- $requests := .resources.requests | default dict }}
{{- $needed := include "nuthatch.mebibytes" .needed }}
{{- if $limits.memory }}
{{- $place := printf "%s.resources.limits.memory" .place }}
{{- $given := include "nuthatch.bytes" (dict "size" $limits.memory "place" $place) }}
{{- if lt (int64 $given) (int64 .needed) }}
{{- fail (printf
    (print
    "%s: expected at least %s, for the budgets of the program and what it needs beside them, "
    "found %s; remove the limit, or lower the budgets or memoryOverhead")
    $place $needed (toString $limits.memory)) }}
{{- end }}
{{- end }}
{{- $memory := default $needed $limits.memory }}
{{- if $requests.memory }}
{{- $place := printf "%s.resources.requests.memory" .place }}
{{- $asked := include "nuthatch.bytes" (dict "size" $requests.memory "place" $place) }}
{{- if gt (int64 $asked) (int64 (include "nuthatch.bytes" (dict "size" $memory "place" $place))) }}
{{- fail (printf "%s: expected at most the limit, which is %s, found %s" $place (toString $memory)
    (toString $requests.memory)) }}
{{- end }}
{{- end }}
limits: {{- merge (dict "memory" $memory) (omit $limits "memory") | toYaml | nindent 2 }}
requests: {{- merge (dict "memory" (default $memory $requests.memory)) (omit $requests "memory") |
    toYaml | nindent 2 }}
{{- end }}

{{/* Returns bytes beside a budget: dict "size" (or empty) "place" "budget" (bytes) "more"
(bytes). */}}
{{- define "nuthatch.overhead" -}}
{{- if .size }}
{{- include "nuthatch.bytes" . }}
{{- else }}
{{- add 67108864 (div (int64 .budget) 16) (int64 (default 0 .more)) }}
{{- end }}
{{- end }}
