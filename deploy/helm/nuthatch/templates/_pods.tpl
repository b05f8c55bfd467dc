{{/* What pods have in common. */}}

{{/* Returns settings of a pod: dict "root" "component" "values" (of the component). */}}
{{- define "nuthatch.podSettings" -}}
serviceAccountName: {{ include "nuthatch.serviceAccountName" .root }}
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
    localhostProfile: {{ . }}
    {{- end }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- range $field := list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" }}
{{- with get $.values $field }}
{{ $field }}: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{- define "nuthatch.podMetadata" -}}
labels:
  {{- include "nuthatch.labels" . | nindent 2 }}
  {{- with .values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (.values.podAnnotations | default dict) (.annotations | default dict) }}
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

{{/* Returns variables of a container, with those of a Secret: dict "place" "values". */}}
{{- define "nuthatch.environment" -}}
{{- range $name, $value := .values.env }}
{{- if regexMatch "(PASSWORD|PWD|SECRET|TOKEN|KEY$|KEY_ID$)" (upper $name) }}
{{- fail (printf
    (print
    "%s.env.%s: expected no secret among the values, found one by its name; put it into a Secret "
    "and name that in %s.credentialsSecret")
    $.place $name $.place) }}
{{- end }}
{{- end }}
{{- with .values.env }}
env:
  {{- range $name, $value := . }}
  - {name: {{ $name }}, value: {{ $value | toString | toJson }}}
  {{- end }}
{{- end }}
{{- with .values.credentialsSecret }}
envFrom:
  - secretRef: {name: {{ . }}}
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
  secret: {secretName: {{ index . 1 }}, defaultMode: 0440}
{{- end }}

{{/* Returns the template of a volume claim: dict "root" "component" "name" "claim" "size". */}}
{{- define "nuthatch.claim" -}}
- apiVersion: v1
  kind: PersistentVolumeClaim
  metadata:
    name: {{ .name }}
    labels:
      {{- include "nuthatch.selectorLabels" . | nindent 6 }}
  spec:
    accessModes: [{{ default "ReadWriteOnce" .claim.accessMode }}]
    {{- with .claim.storageClass }}
    storageClassName: {{ . }}
    {{- end }}
    resources:
      requests:
        storage: {{ .size }}
{{- end }}
