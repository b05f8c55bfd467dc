{{/* Names and labels. Arguments are dict "root" $ "component" "cache". */}}

{{- define "nuthatch.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* Names of Services have no dots and begin with a letter. */}}
{{- define "nuthatch.fullname" -}}
{{- $name := .Values.fullnameOverride }}
{{- if not $name }}
{{- $name = .Release.Name }}
{{- if not (contains (include "nuthatch.name" .) $name) }}
{{- $name = printf "%s-%s" $name (include "nuthatch.name" .) }}
{{- end }}
{{- end }}
{{- if not (regexMatch "^[a-z]" $name) }}
{{- fail (printf
    "fullnameOverride: expected a name that begins with a letter, as names of Services do, found %s"
    $name) }}
{{- end }}
{{- regexReplaceAll "-+$" ($name | replace "." "-" | trunc 40) "" }}
{{- end }}

{{- define "nuthatch.componentName" -}}
{{- printf "%s-%s" (include "nuthatch.fullname" .root) .component }}
{{- end }}

{{- define "nuthatch.selectorLabels" -}}
app.kubernetes.io/name: {{ include "nuthatch.name" .root | quote }}
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "nuthatch.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{ include "nuthatch.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{- define "nuthatch.metadata" -}}
name: {{ include "nuthatch.componentName" . }}
namespace: {{ .root.Release.Namespace | quote }}
labels:
  {{- include "nuthatch.labels" . | nindent 2 }}
{{- end }}

{{- define "nuthatch.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ default $.Chart.AppVersion
    .tag }}{{ end }}
{{- end }}
{{- end }}

{{- define "nuthatch.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "nuthatch.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}
