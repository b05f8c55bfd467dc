{{/* What pods have in common. */}}

{{/* Returns settings of a pod: dict "root" "component" "values" (of the component). */}}
{{- define "nuthatch.podSettings" -}}
serviceAccountName: {{ include "nuthatch.serviceAccountName" .root | quote }}
automountServiceAccountToken: false
# Kubernetes would set variables such as NUTHATCH_PORT; the servers read NUTHATCH_... as settings.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile:
    type: {{ .root.Values.seccompProfile.type }}
    {{- with .root.Values.seccompProfile.localhostProfile }}
    localhostProfile: {{ . | quote }}
    {{- end }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- range $field := list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" }}
{{- with get $.values $field }}
{{ $field }}: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- end }}

{{/* Returns labels and annotations of a pod. Those of the chart replace others of the same name:
the selector needs the labels, and a changed checksum restarts the pods. */}}
{{- define "nuthatch.podMetadata" -}}
labels:
  {{- merge (include "nuthatch.labels" . | fromYaml) (.values.podLabels | default dict) | toYaml |
      nindent 2 }}
{{- with merge (dict) (.annotations | default dict) (.values.podAnnotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Returns image and security of a container. Argument: the root. */}}
{{- define "nuthatch.container" -}}
image: {{ include "nuthatch.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end }}

{{/* Returns the three probes of a server: dict "port" "startupSeconds". */}}
{{- define "nuthatch.probes" -}}
{{- $ping := list "/usr/bin/nuthatch" "ping" (printf "127.0.0.1:%d" (int .port)) "--quiet" }}
startupProbe:
  exec: {command: {{ toJson $ping }}}
  periodSeconds: 5
  timeoutSeconds: 6
  failureThreshold: {{ max 1 (div (add (int .startupSeconds) 4) 5) }}
livenessProbe:
  exec: {command: {{ toJson $ping }}}
  periodSeconds: 10
  timeoutSeconds: 6
  failureThreshold: 6
readinessProbe:
  exec: {command: {{ toJson $ping }}}
  periodSeconds: 5
  timeoutSeconds: 6
  failureThreshold: 2
{{- end }}

{{- define "nuthatch.preStop" -}}
{{- if gt (int .) 0 }}
lifecycle:
  preStop:
    sleep: {seconds: {{ int . }}}
{{- end }}
{{- end }}

{{/* Returns the seconds of a pod to end: dict "preStop" "milliseconds" (of draining and dumping).
*/}}
{{- define "nuthatch.gracePeriod" -}}
{{- add (int .preStop) (div (add (int .milliseconds) 999) 1000) 15 }}
{{- end }}

{{/* Fails if a text has a secret, since all who may read objects of the namespace could read it: a
password in an address, in a header or among keywords of libpq (host=db password=x), a signature or a
token in a query. Dict "text" "place"
"remedy". */}}
{{- define "nuthatch.refuseSecret" -}}
{{- $text := toString .text }}
{{- $found := "" }}
{{- if regexMatch "://[^/\\s\"']*:[^/\\s\"']*@" $text }}
{{- $found = "an address with a password" }}
{{- else if regexMatch "(?i)[?&]((ssl)?password|sig|x-amz-signature|token)=" $text }}
{{- $found = "a password, a signature or a token in the query of an address" }}
{{- else if regexMatch
    "(?i)[?&][^=&\\s\"']*%(4[1-9a-f]|5[0-9a]|6[1-9a-f]|7[0-9a])[^=&\\s\"']*=" $text }}
{{- $found = "an escaped letter in the name of a parameter of an address" }}
{{- else if regexMatch "(?im)(^|[{,\"'])\\s*[\"']?(ssl)?password[\"']?\\s*=" $text }}
{{- $found = "a password" }}
{{- else if include "nuthatch.hasKeywordPassword" $text }}
{{- $found = "a password" }}
{{- else if regexMatch "(?i)authorization\\s*[:=]" $text }}
{{- $found = "a header Authorization" }}
{{- end }}
{{- if $found }}
{{- fail (printf "%s: expected no secret among the values, found %s; %s" .place $found .remedy) }}
{{- end }}
{{- end }}

{{/* Returns "true" if a text has a password among keywords of libpq, in any order. A comparison in a
query is none. */}}
{{- define "nuthatch.hasKeywordPassword" -}}
{{- $keyword := print "(?i)\\b(host|hostaddr|port|dbname|user|service|passfile|require_auth|options|"
    "application_name|fallback_application_name|client_encoding|connect_timeout|tcp_user_timeout|"
    "keepalives(_[a-z]+)?|target_session_attrs|load_balance_hosts|channel_binding|gss[a-z]+|"
    "krbsrvname|ssl_?[a-z]+)\\s*=" }}
{{- $query := "(?is)\\b(select|where)\\b.*\\bpassword\\s*=|\\b(and|or)\\s+password\\s*=" }}
{{- range regexSplit "[\"\n]" . -1 }}
{{- $hasPassword := regexMatch "(?i)(^|['\\s])(ssl)?password\\s*=" . }}
{{- if and $hasPassword (regexMatch $keyword .) (not (regexMatch $query .)) }}true{{ end }}
{{- end }}
{{- end }}

{{/* Returns variables of a container, with those of a Secret: dict "place" "values", and optionally
"hasPodName" for a variable POD_NAME. */}}
{{- define "nuthatch.environment" -}}
{{- range $name, $value := .values.env }}
{{- $isSecret := regexMatch "(PASSWORD|PWD|SECRET|TOKEN|KEY$|KEY_ID$)" (upper $name) }}
{{- if and $isSecret (not (hasSuffix "_FILE" (upper $name))) }}
{{- fail (printf
    (print
    "%s.env.%s: expected no secret among the values, found one by its name; put it into a Secret "
    "and name that in %s.credentialsSecret")
    $.place $name $.place) }}
{{- end }}
{{- include "nuthatch.refuseSecret" (dict "text" $value "place" (printf "%s.env.%s" $.place $name)
    "remedy" (printf "put it into a Secret and name that in %s.credentialsSecret" $.place)) }}
{{- end }}
{{- if or .values.env .hasPodName }}
env:
  {{- range $name, $value := .values.env }}
  - {name: {{ $name | quote }}, value: {{ $value | toString | toJson }}}
  {{- end }}
  {{- if .hasPodName }}
  - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
  {{- end }}
{{- end }}
{{- with .values.credentialsSecret }}
envFrom:
  - secretRef: {name: {{ . | quote }}}
{{- end }}
{{- end }}

{{/* Returns the mount of a Secret: list NAME FOLDER. */}}
{{- define "nuthatch.mount" -}}
- {name: {{ index . 0 }}, mountPath: /etc/nuthatch/{{ index . 1 }}, readOnly: true}
{{- end }}

{{/* Returns the volume of a Secret, readable by the group of the program: list VOLUME SECRET.
*/}}
{{- define "nuthatch.secretVolume" -}}
- name: {{ index . 0 }}
  secret: {secretName: {{ index . 1 | quote }}, defaultMode: 0440}
{{- end }}

{{/* Fails if the StatefulSet exists with a volume of another size, since it cannot change: as
nuthatch.claim, and optionally "needed" (bytes), to which "remedy" is the alternative. */}}
{{- define "nuthatch.claimIsUnchanged" -}}
{{- $place := ternary "cache.follow.volume.size" (printf "%s.persistence.size" .component) (eq .name
    "snapshots") }}
{{- $set := lookup "apps/v1" "StatefulSet" .root.Release.Namespace (include
    "nuthatch.componentName" .) }}
{{- range dig "spec" "volumeClaimTemplates" list $set }}
{{- $size := dig "spec" "resources" "requests" "storage" "" . }}
{{- $now := include "nuthatch.bytes" (dict "size" $size "place" $place) }}
{{- $next := include "nuthatch.bytes" (dict "size" $.size "place" $place) }}
{{- $needed := int64 (default 0 $.needed) }}
{{- if and (eq .metadata.name $.name) (lt (int64 $now) $needed) }}
{{- fail (printf
    (print
    "%s: expected volumes of at least %s, found volumes of %s, whose size a StatefulSet cannot "
    "change; enlarge them as docs/kubernetes.md says in Upgrades, or %s")
    $place (include "nuthatch.mebibytes" $needed) $size $.remedy) }}
{{- end }}
{{- if and (eq .metadata.name $.name) (ne $now $next) }}
{{- fail (printf
    (print
    "%s: expected %s, the size of the volumes, found %s: a StatefulSet cannot change it; set the "
    "size of the volumes, or enlarge them first as docs/kubernetes.md says in Upgrades")
    $place $size $.size) }}
{{- end }}
{{- end }}
{{- end }}

{{/* Returns the template of a volume claim: dict "root" "component" "name" "claim" "size". */}}
{{- define "nuthatch.claim" -}}
{{- include "nuthatch.claimIsUnchanged" . }}
- apiVersion: v1
  kind: PersistentVolumeClaim
  metadata:
    name: {{ .name }}
    labels:
      {{- include "nuthatch.selectorLabels" . | nindent 6 }}
  spec:
    accessModes: [{{ default "ReadWriteOnce" .claim.accessMode }}]
    {{- with .claim.storageClass }}
    storageClassName: {{ . | quote }}
    {{- end }}
    resources:
      requests:
        storage: {{ .size }}
{{- end }}

{{/* Fails if a component exports telemetry, since its network policy lets it connect to nothing:
dict "component" "values". */}}
{{- define "nuthatch.refuseOtlp" -}}
{{- $env := default dict .values.env }}
{{- $arguments := join " " (default list .values.extraArgs) }}
{{- $argument := regexFind "--otlp=\\S+" $arguments | trimPrefix "--otlp=" }}
{{- $address := default (get (default dict .values.settings) "otlp") (get $env "NUTHATCH_OTLP") }}
{{- $address = default $address $argument }}
{{- if has $address (list "" "auto") }}
{{- $address = get $env "OTEL_EXPORTER_OTLP_ENDPOINT" }}
{{- end }}
{{- if not (has $address (list "" "off")) }}
{{- fail (printf
    (print
    "networkPolicy.egress: expected the collector of OpenTelemetry, to which %s connects, and the "
    "DNS of the cluster, found nothing; docs/kubernetes.md has an example") .component) }}
{{- end }}
{{- end }}
