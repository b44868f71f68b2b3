{{/* The name of an object: the release, and its part. */}}
{{- define "repertory.name" -}}
{{- printf "%s-%s" (.root.Release.Name | trunc 40 | trimSuffix "-") .part -}}
{{- end }}

{{/* What selects the pods of a part. */}}
{{- define "repertory.selector" -}}
app.kubernetes.io/name: repertory
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "repertory.labels" -}}
{{ include "repertory.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "repertory.image" -}}
{{- with .root.Values.image -}}
{{- if .registry }}{{ trimSuffix "/" .registry }}/{{ end -}}
repertory-{{ $.part }}:{{ .tag | default $.root.Chart.AppVersion }}
{{- end }}
{{- end }}

{{/* What every pod has: no rights, no token of the cluster, and no variables of other services,
     whose names begin with REPERTORY_ if the release has this name. */}}
{{- define "repertory.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .user }}
  runAsGroup: {{ .group }}
  fsGroup: {{ .group }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "repertory.container" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "repertory.claim" -}}
{{ .Values.data.existingClaim | default (include "repertory.name" (dict "root" . "part" "data")) }}
{{- end }}

{{/* The environment of each process of ours. */}}
{{- define "repertory.environment" -}}
{{- $qdrant := .root.Values.qdrant }}
{{- $redis := .root.Values.redis }}
- name: REPERTORY_DATA_DIR
  value: /data
- name: REPERTORY_QDRANT_URL
{{- if $qdrant.bundled }}
  value: http://{{ include "repertory.name" (dict "root" .root "part" "qdrant") }}:6333
{{- else }}
  value: {{ required "qdrant.url is needed if Qdrant is not bundled" $qdrant.url | quote }}
{{- end }}
{{- with $qdrant.apiKey }}
{{- if .secretName }}
- name: REPERTORY_QDRANT_API_KEY
  valueFrom: {secretKeyRef: {name: {{ .secretName }}, key: {{ .key }}}}
{{- end }}
{{- end }}
{{- with $redis.password }}
{{- if .secretName }}
- name: REDIS_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ .secretName }}, key: {{ .key }}}}
{{- end }}
{{- end }}
- name: REPERTORY_REDIS_URL
{{- if $redis.bundled }}
  value: redis://{{ if $redis.password.secretName }}:$(REDIS_PASSWORD)@{{ end -}}
    {{- include "repertory.name" (dict "root" .root "part" "redis") }}:6379/0
{{- else }}
  value: {{ required "redis.url is needed if Redis is not bundled" $redis.url | quote }}
{{- end }}
{{- if .root.Values.catalogue.config }}
- name: REPERTORY_CONFIG
  value: /etc/repertory/configuration/repertory.toml
{{- end }}
{{- range $name, $value := .root.Values.settings }}
- name: {{ $name }}
  {{- if and (kindIs "float64" $value) (eq $value (floor $value)) }}
  value: {{ int64 $value | quote }}
  {{- else }}
  value: {{ $value | quote }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Where each process of ours finds the configuration. */}}
{{- define "repertory.configurationMount" -}}
{{- if .Values.catalogue.config }}
- {name: configuration, mountPath: /etc/repertory/configuration, readOnly: true}
{{- end }}
{{- end }}

{{- define "repertory.configurationVolume" -}}
{{- if .Values.catalogue.config }}
- name: configuration
  configMap: {name: {{ include "repertory.name" (dict "root" . "part" "watch") }}}
{{- end }}
{{- end }}

{{/* A change of the configuration starts the processes again: they keep the model of their start. */}}
{{- define "repertory.configurationDigest" -}}
{{- with .Values.catalogue.config }}
repertory/configuration: {{ sha256sum . }}
{{- end }}
{{- end }}

{{/* A process that reports to the status board. It is alive while it reports, and also while Redis
     is away: a restart would not help. */}}
{{- define "repertory.reportingProbes" -}}
startupProbe:
  exec: {command: [python3, /opt/repertory/alive.py, {{ . }}]}
  periodSeconds: 10
  timeoutSeconds: 10
  failureThreshold: 60 # the model may have to be downloaded first
readinessProbe:
  exec: {command: [python3, /opt/repertory/alive.py, {{ . }}]}
  periodSeconds: 30
  timeoutSeconds: 10
livenessProbe:
  exec: {command: [python3, /opt/repertory/alive.py, {{ . }}, live]}
  periodSeconds: 30
  timeoutSeconds: 10
  failureThreshold: 4
{{- end }}

{{/* An autoscaler and a disruption budget: one pod at a time may leave. */}}
{{- define "repertory.scaling" -}}
{{- $name := include "repertory.name" . }}
{{- with .values.autoscaling }}
{{- if .enabled }}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {{ $name }}
  labels: {{- include "repertory.labels" $ | nindent 4 }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: {{ $name }}}
  minReplicas: {{ .min }}
  maxReplicas: {{ .max }}
  metrics:
    - type: Resource
      resource: {name: cpu, target: {type: Utilization, averageUtilization: {{ .cpu }}}}
{{- end }}
{{- end }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  labels: {{- include "repertory.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {{- include "repertory.selector" . | nindent 6 }}
{{- end }}
