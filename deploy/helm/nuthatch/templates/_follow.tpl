{{/* Followers: the settings, and containers that other charts can include. docs/kubernetes.md
shows how. "follow" has the values of cache.follow. */}}

{{/* Returns follow.toml: dict "follow" "folder" (with the folders of the snapshots). */}}
{{- define "nuthatch.follow.settings" -}}
{{- $place := printf "%s.snapshots" (default "follow" .place) }}
{{- $names := dict }}
{{- range .follow.snapshots }}
{{- $name := default .name .folder }}
{{- if hasKey $names $name }}
{{- fail (printf "%s: expected one snapshot in each folder, found two in %s" $place $name) }}
{{- end }}
{{- $_ := set $names $name true }}
{{- $remedy := "put credentials into a Secret and name that in credentialsSecret" }}
{{- if regexMatch "://[^/]*@" .source }}
{{- fail (printf
    "%s.source: expected an address without user and password, found one with them; %s" $place
    $remedy) }}
{{- end }}
{{- include "nuthatch.refuseSecret" (dict "text" .source "place" (printf "%s.source" $place)
    "remedy" $remedy) }}
[[snapshot]]
source = {{ toJson .source }}
folder = {{ printf "%s/%s" $.folder (default .name .folder) | toJson }}
{{- with .group }}
group = {{ toJson . }}
{{- end }}
{{- with .maxAge }}
max_age = {{ toJson . }}
{{- end }}
{{- if .trustKeys }}
{{- $files := list }}
{{- range .trustKeys }}
{{- if not (hasKey $.follow.trustKeys .) }}
{{- fail (printf "trustKeys of a snapshot: expected the name of a key in trustKeys, found %q" .) }}
{{- end }}
{{- $files = append $files (printf "trust-%s.pem" .) }}
{{- end }}
trust_key = {{ toJson $files }}
{{- end }}
{{ end }}
{{- range $name, $group := .follow.groups }}
[group.{{ $name }}]
{{- with $group.sameMetadata }}
same_metadata = {{ toJson . }}
{{- end }}
{{ end }}
{{- end }}

{{/* Returns the data of a ConfigMap: as nuthatch.follow.settings. */}}
{{- define "nuthatch.follow.data" -}}
follow.toml: |
  {{- include "nuthatch.follow.settings" . | trim | nindent 2 }}
{{- range $name, $key := .follow.trustKeys }}
trust-{{ $name }}.pem: |
  {{- $key | trim | nindent 2 }}
{{- end }}
{{- end }}

{{/* Returns arguments: dict "root" "follow". */}}
{{- define "nuthatch.follow.arguments" -}}
- follow
- --config=/etc/nuthatch/follow/follow.toml
{{- with .follow.bandwidth }}
- {{ printf "--bandwidth=%s" . | quote }}
{{- end }}
- --delta-memory={{ .follow.deltaMemory | default "256MiB" }}
- {{ printf "--log=%s" .root.Values.log | quote }}
{{- if .root.Values.logJson }}
- --log-json
{{- end }}
{{- end }}

{{- define "nuthatch.follow.admin" -}}
{{- if .root.Values.metrics.enabled }}
- --admin={{ .root.Values.bindAddress }}:9466
- --admin-insecure
{{- else }}
- --admin=127.0.0.1:9466
{{- end }}
- --interval={{ .follow.interval | default "30s" }}
{{- end }}

{{/* Returns what both containers have. */}}
{{- define "nuthatch.follow.body" -}}
{{ include "nuthatch.container" .root }}
{{- include "nuthatch.environment" (dict "place" (default "follow" .place) "values" .follow) }}
{{- $place := printf "%s.deltaMemory" (default "follow" .place) }}
{{- $delta := include "nuthatch.bytes" (dict "size" (.follow.deltaMemory | default "256MiB")
    "place" $place) }}
{{- $needed := add $delta 134217728 }}
resources:
  {{- include "nuthatch.resources" (dict "place" (default "follow" .place) "needed" $needed
      "resources" (.follow.resources | default dict)) | nindent 2 }}
volumeMounts:
  - {name: {{ .volume }}, mountPath: {{ .folder }}}
  {{ include "nuthatch.mount" (list .settings "follow") }}
  {{- if .follow.credentialsFiles }}
  {{ include "nuthatch.mount" (list "follow-credentials" "credentials") }}
  {{- end }}
{{- end }}

{{/* Returns an init container that fetches the current generations, or fails: dict "root"
"follow" "volume" "folder" "settings" (the volume of follow.toml). */}}
{{- define "nuthatch.follow.once" -}}
- name: follow-once
  args:
    {{- include "nuthatch.follow.arguments" . | nindent 4 }}
    - --once
  {{- include "nuthatch.follow.body" . | nindent 2 }}
{{- end }}

{{/* Returns a sidecar: an init container that keeps running, and begins before the containers of
the pod and ends after them. They begin when each folder has a generation. */}}
{{- define "nuthatch.follow.sidecar" -}}
- name: follow
  restartPolicy: Always
  args:
    {{- include "nuthatch.follow.arguments" . | nindent 4 }}
    {{- include "nuthatch.follow.admin" . | trim | nindent 4 }}
  {{- include "nuthatch.follow.body" . | nindent 2 }}
  ports:
    - {name: follow-metrics, containerPort: 9466}
  # No liveness and no readiness: a pod whose snapshots are old still serves them.
  startupProbe:
    exec: {command: [/usr/bin/nuthatch, ping, "127.0.0.1:9466", --quiet]}
    periodSeconds: 5
    timeoutSeconds: 6
    failureThreshold: 720
{{- end }}
