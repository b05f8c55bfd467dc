{{/* The cache as a cluster. Argument: the root. */}}

{{/* Fails if a value cannot work with a cluster. */}}
{{- define "nuthatch.cluster.check" -}}
{{- $cache := .Values.cache }}
{{- range $protocol := list "pmc" "mrcache" }}
{{- if get $cache.listen $protocol }}
{{- fail (printf
    (print
    "cache.listen.%s: expected false with cache.cluster.enabled, found true: nodes serve clients "
    "of Redis and memcached only; set it to false, and install another release for the other "
    "clients") $protocol) }}
{{- end }}
{{- end }}
{{- if not $cache.listen.resp }}
{{- fail "cache.listen.resp: expected true with cache.cluster.enabled, found false" }}
{{- end }}
{{- if and $cache.persistence.enabled (not (include "nuthatch.cache.keepsItems" .)) }}
{{- fail
    (print
    "cache.persistence.enabled: expected false with cache.cluster.enabled and without cache.disk "
    "and cache.warmRestart, found true: a node has nothing then that must outlive its pod") }}
{{- end }}
{{- $hasUsers := and $cache.auth.enabled $cache.auth.usersKey }}
{{- if and $hasUsers (not $cache.cluster.nodeUser) }}
{{- fail (printf
    (print
    "cache.cluster.nodeUser: expected a user of %s as which nodes log in to each other, found "
    "none; add one to that file, such as: user node on #SHA256 ~* +@all")
    $cache.auth.usersKey) }}
{{- end }}
{{- if and $cache.cluster.nodeUser (not $hasUsers) }}
{{- fail (printf
    (print
    "cache.cluster.nodeUser: expected none without cache.auth.usersKey, found %s: nodes log in "
    "with the password of clients") $cache.cluster.nodeUser) }}
{{- end }}
{{- if hasKey (default dict $cache.env) "POD_NAME" }}
{{- fail "cache.env.POD_NAME: expected none with cache.cluster.enabled, which sets it" }}
{{- end }}
{{- include "nuthatch.cluster.checkEtcd" $cache.cluster.etcd }}
{{- end }}

{{/* Fails if nodes cannot connect to etcd with these values. Argument: cache.cluster.etcd. */}}
{{- define "nuthatch.cluster.checkEtcd" -}}
{{- if not .endpoints }}
{{- fail
    (print
    "cache.cluster.etcd.endpoints: expected at least one HOST:PORT of etcd, found none; for "
    "example etcd.etcd.svc:2379") }}
{{- end }}
{{- if and .tls.existingSecret (not .tls.enabled) }}
{{- fail (printf
    (print
    "cache.cluster.etcd.tls.enabled: expected true with tls.existingSecret, which is %s, found "
    "false") .tls.existingSecret) }}
{{- end }}
{{- if and .tls.clientCertificate (not .tls.existingSecret) }}
{{- fail
    (print
    "cache.cluster.etcd.tls.existingSecret: expected a Secret with tls.crt and tls.key for "
    "tls.clientCertificate, found none") }}
{{- end }}
{{- if and .auth.user (not .auth.existingSecret) }}
{{- fail (printf
    (print
    "cache.cluster.etcd.auth.existingSecret: expected a Secret with the password of %s, found "
    "none; create one with: kubectl create secret generic NAME --from-literal=%s=PASSWORD")
    .auth.user .auth.passwordKey) }}
{{- end }}
{{- if and .auth.existingSecret (not .auth.user) }}
{{- fail (printf
    "cache.cluster.etcd.auth.user: expected the user of etcd whose password is in %s, found none"
    .auth.existingSecret) }}
{{- end }}
{{- if and .auth.user (not .tls.enabled) }}
{{- fail
    (print
    "cache.cluster.etcd.tls.enabled: expected true with auth.user, found false: the password would "
    "be sent without encryption") }}
{{- end }}
{{- end }}

{{/* Returns the name of the cluster in etcd. */}}
{{- define "nuthatch.cluster.name" -}}
{{- $name := .Values.cache.cluster.name }}
{{- if not $name }}
{{- $name = printf "%s.%s" .Release.Namespace (include "nuthatch.componentName" (dict "root" .
    "component" "cache")) }}
{{- end }}
{{- if gt (len $name) 64 }}
{{- fail (printf
    (print
    "cache.cluster.name: expected a name of at most 64 characters, found %s, the default; set one")
    $name) }}
{{- end }}
{{- $name }}
{{- end }}

{{/* Returns the seconds in which all items move to other nodes at the maximum rate. */}}
{{- define "nuthatch.cluster.moveSeconds" -}}
{{- $cache := .Values.cache }}
{{- $place := "cache.cluster.moveRate" }}
{{- $memory := int64 (include "nuthatch.bytes" (dict "size" $cache.memory "place"
    "cache.memory")) }}
{{- $rate := int64 (include "nuthatch.bytes" (dict "size" $cache.cluster.moveRate "place"
    $place)) }}
{{- if lt $rate 1048576 }}
{{- fail (printf "%s: expected at least 1MiB, found %s" $place $cache.cluster.moveRate) }}
{{- end }}
{{- div (add $memory $rate -1) $rate }}
{{- end }}

{{/* Returns the milliseconds in which a node may move its slots away after SIGTERM. */}}
{{- define "nuthatch.cluster.drainMs" -}}
{{- $given := toString .Values.cache.cluster.drainMs }}
{{- if $given }}{{ $given }}{{ else -}}
{{- mul 1000 (max 20 (add 10 (int64 (include "nuthatch.cluster.moveSeconds" .)))) }}
{{- end }}
{{- end }}

{{/* Returns the seconds that a new pod has to take its slots back, before the next one ends: all
other nodes send at the same time. */}}
{{- define "nuthatch.cluster.minReadySeconds" -}}
{{- $senders := int64 (max 1 (sub (int .Values.cache.replicas) 1)) }}
{{- add 10 (div (add (int64 (include "nuthatch.cluster.moveSeconds" .)) $senders -1) $senders) }}
{{- end }}

{{/* Returns the lines of nuthatch.toml. */}}
{{- define "nuthatch.cluster.settings" -}}
{{- $cluster := .Values.cache.cluster }}
{{- with $cluster.etcd }}
cluster = {{ printf "%s://%s/%s" (ternary "etcds" "etcd" .tls.enabled) (join "," .endpoints)
    (include "nuthatch.cluster.name" $) | toJson }}
{{- if .tls.existingSecret }}
etcd-ca = "/etc/nuthatch/etcd-tls/ca.crt"
{{- end }}
{{- if .tls.clientCertificate }}
etcd-cert = "/etc/nuthatch/etcd-tls/tls.crt"
etcd-key = "/etc/nuthatch/etcd-tls/tls.key"
{{- end }}
{{- if .auth.user }}
etcd-user = {{ toJson .auth.user }}
etcd-password-file = {{ printf "/etc/nuthatch/etcd-auth/%s" .auth.passwordKey | toJson }}
{{- end }}
{{- end }}
{{- if .Values.cache.tls.existingSecret }}
node-ca = "/etc/nuthatch/tls/ca.crt"
{{- end }}
{{- with $cluster.nodeUser }}
node-user = {{ toJson . }}
node-password-file = {{ printf "/etc/nuthatch/auth/%s" $cluster.nodePasswordKey | toJson }}
{{- end }}
cluster-drain-ms = {{ include "nuthatch.cluster.drainMs" . }}
cluster-move-rate = {{ toJson $cluster.moveRate }}
{{- end }}

{{/* Returns the address of a pod for clients and for the other nodes: its name in the headless
Service. */}}
{{- define "nuthatch.cluster.announced" -}}
$(POD_NAME).{{ include "nuthatch.componentName" (dict "root" . "component" "cache") }}-nodes.{{
    .Release.Namespace }}.svc:6379
{{- end }}

{{/* Returns mounts of the Secrets for etcd. */}}
{{- define "nuthatch.cluster.mounts" -}}
{{- if .Values.cache.cluster.enabled }}
{{- with .Values.cache.cluster.etcd }}
{{- if .tls.existingSecret }}
{{ include "nuthatch.mount" (list "etcd-tls" "etcd-tls") }}
{{- end }}
{{- if .auth.user }}
{{ include "nuthatch.mount" (list "etcd-auth" "etcd-auth") }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "nuthatch.cluster.volumes" -}}
{{- if .Values.cache.cluster.enabled }}
{{- with .Values.cache.cluster.etcd }}
{{- with .tls.existingSecret }}
{{ include "nuthatch.secretVolume" (list "etcd-tls" .) }}
{{- end }}
{{- if .auth.user }}
{{ include "nuthatch.secretVolume" (list "etcd-auth" .auth.existingSecret) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Returns rules of egress: the other nodes, etcd, and the DNS that has their names. */}}
{{- define "nuthatch.cluster.egress" -}}
- to:
    - podSelector:
        matchLabels:
          {{- include "nuthatch.selectorLabels" (dict "root" . "component" "cache") | nindent 10 }}
  ports: [{port: 6379, protocol: TCP}]
{{- $ports := list }}
{{- range .Values.cache.cluster.etcd.endpoints }}
{{- $ports = append $ports (dict "port" (regexFind "[0-9]+$" . | int) "protocol" "TCP") }}
{{- end }}
- ports: {{ uniq $ports | toJson }}
  {{- with .Values.networkPolicy.etcd }}
  to: {{- toYaml . | nindent 4 }}
  {{- end }}
- ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
{{- end }}
