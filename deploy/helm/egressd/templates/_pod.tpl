{{/*
The parts of a guarded pod, for this chart's own agent and for charts that depend on this one:

  initContainers:
    {{- include "egressd.initContainers" .Subcharts.egressd | nindent 4 }}
  containers:
    - name: agent
      env:
        {{- include "egressd.proxyEnv" .Subcharts.egressd | nindent 8 }}
  volumes:
    {{- include "egressd.volumes" .Subcharts.egressd | nindent 4 }}

The order is the enforcement: the rules first, then egressd (started when its startup probe says so), then
everything else. Kubernetes stops native sidecars last.
*/}}
{{- define "egressd.initContainers" -}}
{{- if .Values.capture.enabled }}
- name: capture
  image: {{ include "egressd.image" . }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  args:
    - capture
    - --uid=65532
    - --transparent-port=3129
    - --dns-port=3130
    {{- if .Values.metrics.enabled }}
    - --protect-port=3131
    {{- end }}
  # The one container with a capability; it ends before anything of the agent's starts. As root, since
  # Kubernetes gives capabilities to no other user.
  securityContext:
    runAsUser: 0
    runAsGroup: 0
    runAsNonRoot: false
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
      add: [NET_ADMIN]
    {{- include "egressd.seccomp" . | nindent 4 }}
  resources:
    {{- toYaml .Values.capture.resources | nindent 4 }}
{{- end }}
- name: egressd
  restartPolicy: Always
  args:
    - --listen=127.0.0.1:3128
    {{- if .Values.capture.enabled }}
    - --transparent=:3129
    - --dns=:3130
    {{- end }}
    {{- include "egressd.args" . | nindent 4 }}
  {{- include "egressd.container" . | nindent 2 }}
{{- end }}

{{- define "egressd.args" -}}
- --log-level={{ .Values.egressd.logLevel }}
- --log-format={{ .Values.egressd.logFormat }}
- --drain={{ .Values.egressd.drain }}
{{- range .Values.egressd.dnsUpstream }}
- --dns-upstream={{ . }}
{{- end }}
{{- with .Values.egressd.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Everything of egressd's container but its name and arguments. */}}
{{- define "egressd.container" -}}
image: {{ include "egressd.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
env:
  - name: EGRESSD_POLICY
    value: /etc/egressd/policy.yaml
  # Where this egressd runs stands in every event.
  - name: POD_NAMESPACE
    valueFrom:
      fieldRef:
        fieldPath: metadata.namespace
  - name: POD_NAME
    valueFrom:
      fieldRef:
        fieldPath: metadata.name
  - name: NODE_NAME
    valueFrom:
      fieldRef:
        fieldPath: spec.nodeName
  - name: EGRESSD_RESOURCE
    value: host.name=$(NODE_NAME),k8s.namespace.name=$(POD_NAMESPACE),k8s.pod.name=$(POD_NAME)
  - name: EGRESSD_ADMIN
    value: {{ ternary ":3131" "unix:/run/egressd/admin.sock" .Values.metrics.enabled | quote }}
  {{- with .Values.egressd.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.egressd.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if or .Values.metrics.enabled (eq .Values.mode "gateway") }}
ports:
  {{- if eq .Values.mode "gateway" }}
  - name: proxy
    containerPort: 3128
    protocol: TCP
  {{- end }}
  {{- if .Values.metrics.enabled }}
  - name: metrics
    containerPort: 3131
    protocol: TCP
  {{- end }}
{{- end }}
{{- if .Values.metrics.enabled }}
# The kubelet asks the port that is open anyway: starting a program for each probe takes most of what an idle
# egressd takes.
startupProbe:
  httpGet:
    path: /readyz
    port: metrics
  periodSeconds: 1
  timeoutSeconds: 3
  failureThreshold: 60
readinessProbe:
  httpGet:
    path: /readyz
    port: metrics
  periodSeconds: 10
  timeoutSeconds: 3
livenessProbe:
  httpGet:
    path: /healthz
    port: metrics
  periodSeconds: 20
  timeoutSeconds: 5
  failureThreshold: 3
{{- else }}
startupProbe:
  exec:
    command: [/egressd, healthcheck]
  periodSeconds: 1
  timeoutSeconds: 3
  failureThreshold: 60
readinessProbe:
  exec:
    command: [/egressd, healthcheck]
  periodSeconds: 10
  timeoutSeconds: 3
livenessProbe:
  exec:
    command: [/egressd, healthcheck]
  periodSeconds: 20
  timeoutSeconds: 5
  failureThreshold: 3
{{- end }}
securityContext:
  runAsUser: 65532
  runAsGroup: 65532
  readOnlyRootFilesystem: true
  {{- include "egressd.restricted" . | nindent 2 }}
resources:
  {{- toYaml .Values.egressd.resources | nindent 2 }}
# The directory, not a subPath: only so does a changed ConfigMap arrive.
volumeMounts:
  - name: egressd-policy
    mountPath: /etc/egressd
    readOnly: true
  - name: egressd-run
    mountPath: /run/egressd
  {{- with .Values.egressd.volumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{/* Mounted by egressd's container alone, but for an emptyDir that is shared for reading. */}}
{{- define "egressd.volumes" -}}
- name: egressd-policy
  configMap:
    name: {{ include "egressd.policyName" . }}
- name: egressd-run
  emptyDir:
    medium: Memory
    sizeLimit: 1Mi
{{- with .Values.egressd.volumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The variables that programs look for. Node.js reads them only when told so. */}}
{{- define "egressd.proxyEnv" -}}
{{- $proxy := "http://127.0.0.1:3128" }}
{{- if eq .Values.mode "gateway" }}
{{- /* The address by Kubernetes' own variable: agents need no DNS, and have none. */}}
{{- $host := .Values.gateway.host | default (printf "$(%s_SERVICE_HOST)" (include "egressd.name" . | upper | replace "-" "_")) }}
{{- $proxy = printf "http://%s:3128" $host }}
{{- end }}
{{- range list "HTTP_PROXY" "HTTPS_PROXY" "ALL_PROXY" "http_proxy" "https_proxy" "all_proxy" }}
- name: {{ . }}
  value: {{ $proxy }}
{{- end }}
{{- range list "NO_PROXY" "no_proxy" }}
- name: {{ . }}
  value: localhost,127.0.0.1,::1
{{- end }}
- name: NODE_USE_ENV_PROXY
  value: "1"
{{- end }}
