{{/* Who may connect: checks, and arguments of the servers of stores and chunks. */}}

{{/* Fails unless clients must log in, present a certificate, or are named by the network policy.
Dict "root" "component" "what" (the key of the Secret). */}}
{{- define "nuthatch.checkAccess" -}}
{{- $values := get .root.Values .component }}
{{- $place := .component }}
{{- if and $values.tls.clientCA (not $values.tls.existingSecret) }}
{{- fail (printf
    "%s.tls.clientCA: expected %s.tls.existingSecret with tls.crt, tls.key and ca.crt, found none"
    $place $place) }}
{{- end }}
{{- if and $values.auth.enabled (not $values.auth.existingSecret) }}
{{- fail (printf
    (print
    "%s.auth.existingSecret: expected the name of a Secret with %s, found none; create one with: "
    "kubectl create secret generic NAME --from-%s; or set %s.auth.enabled=false to rely on "
    "tls.clientCA or the network policy")
    $place .what .literal $place) }}
{{- end }}
{{- $isCache := eq .component "cache" }}
{{- if and $values.auth.enabled (not $isCache) (not $values.tls.existingSecret) }}
{{- fail (printf
    (print
    "%s.tls.existingSecret: expected the name of a Secret of type kubernetes.io/tls, found none: "
    "tokens would be sent without encryption; create one with: kubectl create secret tls NAME "
    "--cert=FILE --key=FILE")
    $place) }}
{{- end }}
{{- if not (or $values.auth.enabled $values.tls.clientCA .root.Values.networkPolicy.enabled) }}
{{- fail (printf
    (print
    "%s.auth.enabled: expected a login, %s.tls.clientCA or networkPolicy.enabled, found none: "
    "all pods of the cluster could read and write")
    $place $place) }}
{{- end }}
{{- end }}

{{/* Returns arguments of "store serve" and "chunks serve": dict "root" "component" "port"
"admin". */}}
{{- define "nuthatch.accessArguments" -}}
{{- $values := get .root.Values .component }}
{{- $isOpen := not (and $values.tls.existingSecret (or $values.auth.enabled
    $values.tls.clientCA)) }}
- --listen={{ .root.Values.bindAddress }}:{{ .port }}
{{- if .root.Values.metrics.enabled }}
- --admin={{ .root.Values.bindAddress }}:{{ .admin }}
- --admin-insecure
{{- else }}
- --admin=127.0.0.1:{{ .admin }}
{{- end }}
{{- if $isOpen }}
- --insecure
{{- end }}
{{- if $values.tls.existingSecret }}
- --tls-cert=/etc/nuthatch/tls/tls.crt
- --tls-key=/etc/nuthatch/tls/tls.key
{{- end }}
{{- if $values.tls.clientCA }}
- --tls-client-ca=/etc/nuthatch/tls/ca.crt
{{- end }}
{{- if $values.auth.enabled }}
- --tokens=/etc/nuthatch/auth/{{ $values.auth.tokensKey }}
{{- end }}
- --drain-ms={{ int $values.drainMs }}
- {{ printf "--log=%s" .root.Values.log | quote }}
{{- if .root.Values.logJson }}
- --log-json
{{- end }}
{{- end }}

{{- define "nuthatch.accessMounts" -}}
{{- if .auth.enabled }}
{{ include "nuthatch.mount" (list "auth" "auth") }}
{{- end }}
{{- if .tls.existingSecret }}
{{ include "nuthatch.mount" (list "tls" "tls") }}
{{- end }}
{{- end }}

{{- define "nuthatch.accessVolumes" -}}
{{- if .auth.enabled }}
{{ include "nuthatch.secretVolume" (list "auth" .auth.existingSecret) }}
{{- end }}
{{- with .tls.existingSecret }}
{{ include "nuthatch.secretVolume" (list "tls" .) }}
{{- end }}
{{- end }}
