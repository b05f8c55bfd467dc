{{/* The cache server: its settings, memory and ports. Argument: the root. */}}

{{- define "nuthatch.cache.check" -}}
{{- $cache := .Values.cache }}
{{- $secret := "a password" }}
{{- $literal := printf "literal=%s=PASSWORD" $cache.auth.passwordKey }}
{{- if $cache.auth.usersKey }}
{{- $secret = "a file of users" }}
{{- $literal = printf "file=%s=users.acl" $cache.auth.usersKey }}
{{- end }}
{{- include "nuthatch.checkAccess" (dict "root" . "component" "cache" "what" $secret "literal"
    $literal) }}
{{- if $cache.cluster.enabled }}
{{- include "nuthatch.cluster.check" . }}
{{- end }}
{{- if and $cache.listen.mrcache $cache.auth.enabled }}
{{- fail
    (print
    "cache.listen.mrcache: expected cache.auth.enabled=false, since the protocol of mrcache has "
    "no login; install another release for its clients") }}
{{- end }}
{{- if not (or $cache.listen.resp $cache.listen.memcache $cache.listen.pmc $cache.listen.mrcache) }}
{{- fail "cache.listen: expected at least one protocol that is true, found none" }}
{{- end }}
{{- $memory := int64 (include "nuthatch.bytes" (dict "size" $cache.memory "place"
    "cache.memory")) }}
{{- if or (lt $memory 16777216) (gt $memory 1099511627776) }}
{{- fail (printf "cache.memory: expected a size from 16MiB to 1TiB, found %s" $cache.memory) }}
{{- end }}
{{- $isKept := or $cache.warmRestart (gt (int64 (include "nuthatch.cache.disk" .)) 0) }}
{{- if and $isKept (not $cache.persistence.enabled) }}
{{- fail
    (print
    "cache.persistence.enabled: expected true with cache.disk or cache.warmRestart, found false: "
    "the items would be lost with the pod") }}
{{- end }}
{{- if and $cache.follow.enabled (not $cache.follow.snapshots) }}
{{- fail
    (print
    "cache.follow.snapshots: expected at least one snapshot with cache.follow.enabled, found "
    "none") }}
{{- end }}
{{- end }}

{{- define "nuthatch.cache.disk" -}}
{{- include "nuthatch.bytes" (dict "size" .Values.cache.disk "place" "cache.disk") }}
{{- end }}

{{- define "nuthatch.cache.keepsItems" -}}
{{- if or .Values.cache.warmRestart (gt (int64 (include "nuthatch.cache.disk" .)) 0) }}true{{ end }}
{{- end }}

{{/* Returns the bytes that the container needs: the budget, what it needs beside it, snapshots.
*/}}
{{- define "nuthatch.cache.memory" -}}
{{- $cache := .Values.cache }}
{{- $budget := include "nuthatch.bytes" (dict "size" $cache.memory "place" "cache.memory") }}
{{- $more := ternary 33554432 0 (gt (int64 (include "nuthatch.cache.disk" .)) 0) }}
{{- $overhead := include "nuthatch.overhead" (dict "size" $cache.memoryOverhead "place"
    "cache.memoryOverhead" "budget" $budget "more" $more) }}
{{- $snapshots := 0 }}
{{- if $cache.follow.enabled }}
{{- $snapshots = include "nuthatch.bytes" (dict "size" $cache.snapshotMemory "place"
    "cache.snapshotMemory") }}
{{- end }}
{{- add (int64 $budget) (int64 $overhead) (int64 $snapshots) }}
{{- end }}

{{/* Returns the bytes of items on disk, or of the longest dump, for which the volume has space. */}}
{{- define "nuthatch.cache.volumeBytes" -}}
{{- $disk := int64 (include "nuthatch.cache.disk" .) }}
{{- $memory := int64 (include "nuthatch.bytes" (dict "size" .Values.cache.memory "place"
    "cache.memory")) }}
{{- /* A dump ends at four times the memory: MAX_DUMP_RATIO of the server. */}}
{{- ternary (add $disk (div $disk 16)) (mul 4 $memory) (gt $disk 0) }}
{{- end }}

{{/* Returns the minimum size of the volume in bytes: 0 without disk and without dumps. */}}
{{- define "nuthatch.cache.neededBytes" -}}
{{- if include "nuthatch.cache.keepsItems" . }}{{ include "nuthatch.cache.volumeBytes" . }}
{{- else }}0{{ end }}
{{- end }}

{{- define "nuthatch.cache.volumeRemedy" -}}
lower {{ if gt (int64 (include "nuthatch.cache.disk" .)) 0 }}cache.disk{{ else -}}
cache.memory{{ end }}
{{- end }}

{{/* Returns the size of the volume, and refuses one that is too small. */}}
{{- define "nuthatch.cache.volumeSize" -}}
{{- $cache := .Values.cache }}
{{- $needed := int64 (include "nuthatch.cache.neededBytes" .) }}
{{- if $cache.persistence.size }}
{{- $given := include "nuthatch.bytes" (dict "size" $cache.persistence.size "place"
    "cache.persistence.size") }}
{{- if lt (int64 $given) $needed }}
{{- fail (printf
    (print
    "cache.persistence.size: expected at least %s, for the items on disk, or for a dump of up to "
    "four times the memory, found %s; set a larger size (enlarge volumes that exist as "
    "docs/kubernetes.md says in Upgrades), or %s")
    (include "nuthatch.mebibytes" $needed) $cache.persistence.size
    (include "nuthatch.cache.volumeRemedy" .)) }}
{{- end }}
{{- $cache.persistence.size }}
{{- else }}
{{- include "nuthatch.mebibytes" (add (int64 (include "nuthatch.cache.volumeBytes" .))
    1073741824) }}
{{- end }}
{{- end }}

{{- define "nuthatch.cache.address" -}}
{{- $cache := .root.Values.cache }}
{{- if get $cache.listen .name -}}
{{ printf "%s%s:%d" (ternary "tls:" "" (not (empty $cache.tls.existingSecret)))
    .root.Values.bindAddress (int .port) | toJson }}
{{- else }}"off"{{ end }}
{{- end }}

{{/* Returns ports of protocols as "name: port", for those that are on. */}}
{{- define "nuthatch.cache.ports" -}}
{{- $ports := dict "resp" 6379 "memcache" 11211 "pmc" 9001 "mrcache" 7000 }}
{{- range $name := list "resp" "memcache" "pmc" "mrcache" }}
{{- if get $.Values.cache.listen $name }}
{{ $name }}: {{ get $ports $name }}
{{- end }}
{{- end }}
{{- end }}

{{/* Returns "true" if a Service is in front of all replicas. In a cluster, clients find the other
nodes through it. */}}
{{- define "nuthatch.cache.isShared" -}}
{{- with .Values.cache -}}
{{ or .sharedService .cluster.enabled (eq (int .replicas) 1) }}
{{- end }}
{{- end }}

{{/* Returns nuthatch.toml. */}}
{{- define "nuthatch.cache.settings" -}}
{{- $cache := .Values.cache }}
resp = {{ include "nuthatch.cache.address" (dict "root" . "name" "resp" "port" 6379) }}
memcache = {{ include "nuthatch.cache.address" (dict "root" . "name" "memcache" "port" 11211) }}
pmc = {{ include "nuthatch.cache.address" (dict "root" . "name" "pmc" "port" 9001) }}
mrcache = {{ include "nuthatch.cache.address" (dict "root" . "name" "mrcache" "port" 7000) }}
admin = {{ printf "%s:9464" (ternary .Values.bindAddress "127.0.0.1" .Values.metrics.enabled) |
    toJson }}
{{- if .Values.metrics.enabled }}
admin-insecure = true
{{- end }}
{{- if not (or $cache.auth.enabled $cache.tls.clientCA) }}
insecure = true
{{- end }}
memory = {{ toJson $cache.memory }}
drain-ms = {{ int $cache.drainMs }}
{{- if or $cache.persistence.enabled $cache.cluster.enabled }}
data-dir = "/var/lib/nuthatch/data"
{{- end }}
{{- if include "nuthatch.cache.keepsItems" . }}
disk = {{ toString $cache.disk | toJson }}
warm-restart = {{ $cache.warmRestart }}
dump-ms = {{ int $cache.dumpMs }}
{{- end }}
{{- if $cache.cluster.enabled }}
{{- include "nuthatch.cluster.settings" . }}
{{- end }}
{{- if $cache.auth.enabled }}
{{- if $cache.auth.usersKey }}
users = {{ printf "/etc/nuthatch/auth/%s" $cache.auth.usersKey | toJson }}
{{- else }}
password-file = {{ printf "/etc/nuthatch/auth/%s" $cache.auth.passwordKey | toJson }}
{{- end }}
{{- end }}
{{- if $cache.tls.existingSecret }}
tls-cert = "/etc/nuthatch/tls/tls.crt"
tls-key = "/etc/nuthatch/tls/tls.key"
{{- end }}
{{- if $cache.tls.clientCA }}
tls-client-ca = "/etc/nuthatch/tls/ca.crt"
{{- end }}
{{- include "nuthatch.cache.snapshots" . }}
log = {{ toJson .Values.log }}
log-format = {{ ternary "json" "text" .Values.logJson | toJson }}
{{- include "nuthatch.cache.otherSettings" . }}
{{- end }}

{{- define "nuthatch.cache.snapshots" -}}
{{- if .Values.cache.follow.enabled }}
{{- $snapshots := list }}
{{- $prefixes := list }}
{{- range .Values.cache.follow.snapshots }}
{{- $snapshots = append $snapshots (printf "%s=/srv/snapshots/%s/%s" .name .name .file) }}
{{- if .prefix }}
{{- $prefixes = append $prefixes (printf "%s=%s" .name .prefix) }}
{{- end }}
{{- end }}
snapshot = {{ toJson $snapshots }}
{{- with $prefixes }}
snapshot-prefix = {{ toJson . }}
{{- end }}
{{- end }}
{{- end }}

{{- define "nuthatch.cache.otherSettings" -}}
{{- $values := dict "resp" "cache.listen" "memcache" "cache.listen" "pmc" "cache.listen" "mrcache"
    "cache.listen" }}
{{- $values = merge $values (dict "admin" "metrics.enabled" "admin-insecure"
    "metrics.enabled" "insecure" "cache.auth" "memory" "cache.memory" "disk" "cache.disk") }}
{{- $values = merge $values (dict "data-dir" "cache.persistence" "warm-restart" "cache.warmRestart"
    "drain-ms" "cache.drainMs" "dump-ms" "cache.dumpMs") }}
{{- $values = merge $values (dict "password" "cache.auth" "password-file" "cache.auth" "users"
    "cache.auth" "tls-cert" "cache.tls" "tls-key" "cache.tls" "tls-client-ca" "cache.tls") }}
{{- $values = merge $values (dict "snapshot" "cache.follow" "snapshot-prefix" "cache.follow" "log"
    "log" "log-format" "logJson") }}
{{- $values = merge $values (dict "store" "store.enabled" "grpc" "store.enabled" "store-tokens"
    "store.auth") }}
{{- $values = merge $values (dict "cluster" "cache.cluster" "announce" "cache.cluster"
    "cluster-drain-ms" "cache.cluster.drainMs" "cluster-move-rate" "cache.cluster.moveRate") }}
{{- range $name := list "ca" "cert" "key" "user" "password" "password-file" }}
{{- $_ := set $values (printf "etcd-%s" $name) "cache.cluster.etcd" }}
{{- $_ := set $values (printf "node-%s" $name) "cache.cluster" }}
{{- end }}
{{- range $name, $value := .Values.cache.settings }}
{{- with get $values ($name | replace "_" "-") }}
{{- fail (printf
    "cache.settings.%s: expected a setting that no other value sets, found one that %s sets" $name
    .) }}
{{- end }}
{{- include "nuthatch.refuseSecret" (dict "text" (toString $value) "place" (printf
    "cache.settings.%s" $name) "remedy" "use the setting that names a file with it") }}
{{ $name }} = {{ if kindIs "float64" $value }}{{ int64 $value }}{{ else }}{{ toJson
    $value }}{{ end }}
{{- end }}
{{- end }}
