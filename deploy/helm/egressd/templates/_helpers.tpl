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
{{ include "egressd.seccomp" . }}
{{- end }}

{{- define "egressd.seccomp" -}}
seccompProfile:
  {{- toYaml .Values.seccompProfile | nindent 2 }}
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
{{- include "egressd.checkRules" . }}
{{- include "egressd.checkDrain" . }}
{{- include "egressd.checkVolumes" . }}
{{- end }}

{{/*
Rules that egressd would refuse, where that can be seen without it: whether a longer name is a public suffix
only `egressd check` knows.
*/}}
{{- define "egressd.checkRules" -}}
{{- if not .Values.existingPolicy }}
{{- range $key := list "allow" "deny" }}
{{- range dig $key (list) ($.Values.policy | default dict) | default list }}
{{- $rule := toString . }}
{{- $at := printf "policy.%s: %q" $key $rule }}
{{- if regexMatch "^[*](:\\S*)?$" $rule }}
{{- fail (printf "%s stands for every host: name the hosts." $at) }}
{{- else if regexMatch "^([*]?[.])([a-z]{2}|com|net|org|edu|gov|mil|int|info|biz|name|app|dev|cloud)(:\\S*)?$" (lower $rule) }}
{{- fail (printf "%s covers a whole public suffix: name the domain, as *.example.com." $at) }}
{{- else if regexMatch "^[A-Za-z]+://" $rule }}
{{- fail (printf "%s: a host rule has no scheme: write the host alone, or methods before the URL, as GET https://api.example.com/v1/**." $at) }}
{{- else if regexMatch "^[^ ]*[A-Za-z0-9_-][*][^ ]*$" $rule }}
{{- fail (printf "%s: * stands only for whole labels at the front: write *.example.com." $at) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* A drain that outlasts the pod's grace period ends with SIGKILL, in the middle of flows. */}}
{{- define "egressd.checkDrain" -}}
{{- $drain := .Values.egressd.drain }}
{{- $n := regexFind "^[0-9]+" $drain | int64 }}
{{- $ms := $n }}
{{- if not (hasSuffix "ms" $drain) }}{{ $ms = mul $n (ternary 60000 1000 (hasSuffix "m" $drain)) }}{{ end }}
{{- /* In mode gateway the grace period also holds the five seconds of preStop. */}}
{{- $grace := sub (int64 .Values.terminationGracePeriodSeconds) (ternary 5 0 (eq .Values.mode "gateway")) }}
{{- if ge $ms (mul $grace 1000) }}
{{- fail (printf "egressd.drain (%s) must end before the pod's grace period does (%d s of terminationGracePeriodSeconds are left for it): raise terminationGracePeriodSeconds." $drain $grace) }}
{{- end }}
{{- end }}

{{/*
Threat: the agent mounts what egressd alone may have, and reads its secrets -> a volume of egressd's may be
mounted elsewhere only if it is an emptyDir, and only for reading. Left over: a Secret that is named a second
time, as a volume or variable of the agent's own.
*/}}
{{- define "egressd.checkVolumes" -}}
{{- $own := dict "egressd-policy" false "egressd-run" false }}
{{- range .Values.egressd.volumes }}
{{- if hasKey $own .name }}
{{- fail (printf "egressd.volumes: the name %s is taken: choose another." .name) }}
{{- end }}
{{- $_ := set $own .name (hasKey . "emptyDir") }}
{{- end }}
{{- $agent := dict "name" "agent" "volumeMounts" .Values.agent.volumeMounts }}
{{- range concat (list $agent) .Values.agent.extraContainers .Values.agent.initContainers }}
{{- $container := .name }}
{{- range .volumeMounts }}
{{- if and (hasKey $own .name) (not (and (get $own .name) .readOnly)) }}
{{- fail (printf "container %s mounts %s, which is egressd's: only an emptyDir may be shared, with readOnly: true." $container .name) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
