{{- define "eurekube-sync.labels" -}}
app.kubernetes.io/name: eurekube-sync
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "eurekube-sync.podLabels" -}}
{{- include "eurekube-sync.labels" . }}
{{- range $name, $value := .Values.podLabels }}
{{ quote $name }}: {{ quote $value }}
{{- end }}
{{- end }}

{{- /* What every form of the pod has, but its args and restartPolicy. */}}
{{- define "eurekube-sync.pod" -}}
serviceAccountName: {{ .Release.Name }}
automountServiceAccountToken: true
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toJson . }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ quote . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
volumes:
- name: secret
  secret:
    secretName: {{ quote .Values.secretName }}
    optional: true
{{- range .Values.extraVolumes }}
- {{ toJson . }}
{{- end }}
{{- end }}

{{- define "eurekube-sync.container" -}}
name: eurekube-sync
{{- with .Values.image }}
{{- /* A name without a slash is one of Docker's own images, which ours never is. */}}
{{- if not (contains "/" .repository) }}
{{- fail "set image.repository: the image with its registry, such as registry.example.com/eurekube-sync" }}
{{- end }}
{{- if .digest }}
image: {{ printf "%s@%s" .repository .digest }}
{{- else }}
image: {{ printf "%s:%s" .repository (.tag | default $.Chart.AppVersion) }}
{{- end }}
{{- /* A released version does not change, and kubelet's default for it is IfNotPresent. */}}
{{- if ne .pullPolicy "IfNotPresent" }}
imagePullPolicy: {{ .pullPolicy }}
{{- end }}
{{- end }}
command: [eurekube-sync]
envFrom:
- configMapRef:
    name: {{ .Release.Name }}
{{- with .Values.extraEnv }}
env: {{ toJson . }}
{{- end }}
resources: {{ toJson .Values.resources }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
- name: secret
  mountPath: /var/run/secrets/eurekube-sync
  readOnly: true
{{- range .Values.extraVolumeMounts }}
- {{ toJson . }}
{{- end }}
{{- end }}
