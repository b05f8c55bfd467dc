{{/* Names and labels. Arguments are dict "root" $ "component" "cache". */}}

{{- define "nuthatch.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "nuthatch.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "nuthatch.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "nuthatch.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "nuthatch.componentName" -}}
{{- printf "%s-%s" (include "nuthatch.fullname" .root) .component }}
{{- end }}

{{- define "nuthatch.selectorLabels" -}}
app.kubernetes.io/name: {{ include "nuthatch.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
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
namespace: {{ .root.Release.Namespace }}
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
