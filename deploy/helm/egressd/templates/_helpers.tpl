{{/* Names and labels. */}}
{{- define "egressd.name" -}}
{{- if eq .Release.Name .Chart.Name }}{{ .Chart.Name }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "egressd.labels" -}}
app.kubernetes.io/name: egressd
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* Every pod whose egress egressd guards. */}}
{{- define "egressd.agentLabels" -}}
app.kubernetes.io/name: egressd
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: agent
{{- end }}

{{- define "egressd.gatewayLabels" -}}
app.kubernetes.io/name: egressd
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: gateway
{{- end }}

{{- define "egressd.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "egressd.name" .) }}
{{- end }}

{{- define "egressd.policyName" -}}
{{ .Values.existingPolicy | default (printf "%s-policy" (include "egressd.name" .)) }}
{{- end }}

{{- define "egressd.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "egressd.agentImage" -}}
{{ .Values.agent.image.repository }}{{ if .Values.agent.image.digest }}@{{ .Values.agent.image.digest }}{{ else }}:{{ .Values.agent.image.tag }}{{ end }}
{{- end }}

{{/* The container settings that the restricted Pod Security profile asks for. */}}
{{- define "egressd.restricted" -}}
runAsNonRoot: true
allowPrivilegeEscalation: false
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* What would undo the capture is refused here, before anything is installed. */}}
{{- define "egressd.check" -}}
{{- range concat .Values.agent.extraContainers .Values.agent.initContainers }}
{{- $uid := dig "securityContext" "runAsUser" "" . }}
{{- if eq (toString $uid) "65532" }}
{{- fail (printf "container %s runs as uid 65532, which is egressd's own: the capture would let it pass. Choose another uid." .name) }}
{{- end }}
{{- $caps := dig "securityContext" "capabilities" "add" list . }}
{{- if or (dig "securityContext" "privileged" false .) $caps }}
{{- fail (printf "container %s asks for privileges or capabilities: with them it could change the capture's rules or become uid 65532." .name) }}
{{- end }}
{{- end }}
{{- end }}
