{{/*
The specification of a guarded pod. Called with a dict: root (the chart's context), containers (text),
restartPolicy, agent (whether the agent's own volumes, init and extra containers belong to it).
*/}}
{{- define "egressd.agentPodSpec" -}}
{{- $ := .root }}
{{- $sidecar := eq $.Values.mode "sidecar" -}}
serviceAccountName: {{ include "egressd.serviceAccount" $ }}
automountServiceAccountToken: false
# Only a gateway's address is looked for there.
enableServiceLinks: {{ not $sidecar }}
restartPolicy: {{ .restartPolicy }}
terminationGracePeriodSeconds: {{ $.Values.terminationGracePeriodSeconds }}
{{- if not $sidecar }}
# No DNS: names are resolved by the gateway. Look-ups past the proxy fail at once instead of timing out.
dnsPolicy: None
dnsConfig:
  nameservers: [127.0.0.1]
{{- end }}
{{- with $.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ $.Values.agent.runAsUser }}
  runAsGroup: {{ $.Values.agent.runAsGroup }}
  fsGroup: {{ $.Values.agent.fsGroup }}
  {{- include "egressd.seccomp" $ | nindent 2 }}
{{- $init := list }}
{{- if $sidecar }}{{ $init = append $init (include "egressd.initContainers" $) }}{{ end }}
{{- if and .agent $.Values.agent.initContainers }}{{ $init = append $init (toYaml $.Values.agent.initContainers) }}{{ end }}
{{- with $init }}
initContainers:
  {{- range . }}
  {{- . | trim | nindent 2 }}
  {{- end }}
{{- end }}
containers:
  {{- .containers | nindent 2 }}
  {{- if and .agent $.Values.agent.extraContainers }}
  {{- toYaml $.Values.agent.extraContainers | nindent 2 }}
  {{- end }}
{{- $volumes := list }}
{{- if $sidecar }}{{ $volumes = append $volumes (include "egressd.volumes" $) }}{{ end }}
{{- if and .agent $.Values.agent.volumes }}{{ $volumes = append $volumes (toYaml $.Values.agent.volumes) }}{{ end }}
{{- with $volumes }}
volumes:
  {{- range . }}
  {{- . | trim | nindent 2 }}
  {{- end }}
{{- end }}
{{- with $.Values.agent.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $.Values.agent.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $.Values.agent.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $.Values.agent.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- end }}

{{- define "egressd.agentContainer" -}}
- name: agent
  image: {{ include "egressd.agentImage" . }}
  imagePullPolicy: {{ .Values.agent.image.pullPolicy }}
  {{- with .Values.agent.command }}
  command:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.agent.args }}
  args:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.agent.workingDir }}
  workingDir: {{ . }}
  {{- end }}
  {{- if or .Values.agent.proxyVariables .Values.agent.env }}
  env:
    {{- if .Values.agent.proxyVariables }}
    {{- include "egressd.proxyEnv" . | trim | nindent 4 }}
    {{- end }}
    {{- with .Values.agent.env }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- end }}
  {{- with .Values.agent.envFrom }}
  envFrom:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsUser: {{ .Values.agent.runAsUser }}
    runAsGroup: {{ .Values.agent.runAsGroup }}
    readOnlyRootFilesystem: {{ .Values.agent.readOnlyRootFilesystem }}
    {{- include "egressd.restricted" . | nindent 4 }}
  {{- with .Values.agent.resources }}
  resources:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.agent.volumeMounts }}
  volumeMounts:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- define "egressd.agentPodLabels" -}}
{{ include "egressd.agentLabels" . }}
{{- with .Values.agent.podLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "egressd.agentPodMetadata" -}}
labels:
  {{- include "egressd.agentPodLabels" . | nindent 2 }}
{{- $annotations := .Values.agent.podAnnotations }}
{{- if and .Values.metrics.enabled .Values.metrics.annotations (not .Values.metrics.podMonitor.enabled) (eq .Values.mode "sidecar") }}
{{- $annotations = merge (dict "prometheus.io/scrape" "true" "prometheus.io/port" "3131" "prometheus.io/path" "/metrics") $annotations }}
{{- end }}
{{- with $annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
