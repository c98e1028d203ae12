{{- define "version-gateway.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "version-gateway.fullname" -}}
{{- $name := include "version-gateway.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 57 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 57 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 57 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "version-gateway.selector" -}}
app.kubernetes.io/name: {{ include "version-gateway.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "version-gateway.labels" -}}
{{ include "version-gateway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "version-gateway.metadata" -}}
name: {{ include "version-gateway.fullname" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "version-gateway.labels" . | nindent 2 }}
{{- end -}}

{{- define "version-gateway.secret" -}}
{{- default (include "version-gateway.fullname" .) .Values.secret.existing -}}
{{- end -}}

{{- define "version-gateway.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "version-gateway.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The key of a file in a ConfigMap, which cannot contain a slash. */}}
{{- define "version-gateway.key" -}}
{{- . | replace "/" "__" -}}
{{- end -}}

{{/* A file of monitoring/ with the address of the documentation. Without it, alerts name the file of their
runbook, and the dashboard has no links. */}}
{{- define "version-gateway.monitoring" -}}
{{- $text := .root.Files.Get (printf "monitoring/%s" .file) -}}
{{- $docs := "https://example.com/version-gateway/docs" -}}
{{- if .root.Values.docsUrl -}}
{{- $text | replace $docs (trimSuffix "/" .root.Values.docsUrl) -}}
{{- else if hasSuffix ".json" .file -}}
{{- $dashboard := fromJson $text -}}
{{- range append $dashboard.panels $dashboard -}}
{{- $_ := unset . "links" -}}
{{- end -}}
{{- toPrettyJson $dashboard -}}
{{- else -}}
{{- $text | replace $docs "docs" -}}
{{- end -}}
{{- end -}}
