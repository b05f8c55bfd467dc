package check

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
)

// restricted returns what the restricted profile of the pod security standards forbids in a pod.
func restricted(pod *pod) []string {
	spec := &pod.Spec
	found := []string{}
	refuse := func(is bool, format string, values ...any) {
		if is {
			found = append(found, fmt.Sprintf(format, values...))
		}
	}
	refuse(spec.HostNetwork || spec.HostPID || spec.HostIPC, "a namespace of the host")
	context := spec.SecurityContext
	if context == nil {
		return append(found, "no securityContext")
	}
	refuse(!isTrue(context.RunAsNonRoot), "runAsNonRoot of the pod")
	refuse(context.RunAsUser != nil && *context.RunAsUser == 0, "user 0")
	refuse(len(context.Sysctls) > 0, "sysctls")
	profile := context.SeccompProfile
	refuse(profile == nil || profile.Type == core.SeccompProfileTypeUnconfined, "seccomp profile")
	for _, volume := range spec.Volumes {
		source := volume.VolumeSource
		allowed := source.ConfigMap != nil || source.CSI != nil || source.DownwardAPI != nil ||
			source.EmptyDir != nil || source.Ephemeral != nil ||
			source.PersistentVolumeClaim != nil || source.Projected != nil || source.Secret != nil
		refuse(!allowed, "volume %s", volume.Name)
	}
	for _, container := range pod.containers() {
		for _, rule := range restrictedContainer(&container) {
			refuse(true, "%s: %s", container.Name, rule)
		}
	}
	return found
}

func restrictedContainer(container *core.Container) []string {
	context := container.SecurityContext
	if context == nil {
		return []string{"no securityContext"}
	}
	found := []string{}
	if isTrue(context.Privileged) {
		found = append(found, "privileged")
	}
	if context.AllowPrivilegeEscalation == nil || *context.AllowPrivilegeEscalation {
		found = append(found, "allowPrivilegeEscalation")
	}
	if context.RunAsUser != nil && *context.RunAsUser == 0 {
		found = append(found, "user 0")
	}
	capabilities := context.Capabilities
	if capabilities == nil || len(capabilities.Drop) != 1 || capabilities.Drop[0] != "ALL" ||
		len(capabilities.Add) > 0 {
		found = append(found, "capabilities")
	}
	for _, port := range container.Ports {
		if port.HostPort != 0 {
			found = append(found, "hostPort")
		}
	}
	return found
}

func isTrue(value *bool) bool {
	return value != nil && *value
}

func TestPodsAreRestricted(t *testing.T) {
	for name, values := range valueFiles(t) {
		for _, pod := range objectsOf(t, values).pods {
			for _, rule := range restricted(&pod) {
				// The follower of a node writes to a folder of the node; docs/kubernetes.md says so.
				if pod.kind != "DaemonSet" || rule != "volume snapshots" {
					t.Errorf("%s: %s: the restricted profile forbids: %s", name, pod.name, rule)
				}
			}
		}
	}
}

func TestPodsHaveNoTokenAndNoWritableRoot(t *testing.T) {
	for name, values := range valueFiles(t) {
		found := objectsOf(t, values)
		for _, pod := range found.pods {
			token := pod.Spec.AutomountServiceAccountToken
			if token == nil || *token {
				t.Errorf("%s: %s: a token of the cluster is mounted", name, pod.name)
			}
			links := pod.Spec.EnableServiceLinks
			if links == nil || *links {
				t.Errorf("%s: %s: Kubernetes sets variables NUTHATCH_...", name, pod.name)
			}
			for _, container := range pod.containers() {
				if !isTrue(container.SecurityContext.ReadOnlyRootFilesystem) {
					t.Errorf("%s: %s: the root is writable", name, container.Name)
				}
			}
		}
		for _, account := range found.accounts {
			if token := account.AutomountServiceAccountToken; token == nil || *token {
				t.Errorf("%s: %s: its token is mounted", name, account.Name)
			}
		}
	}
}

// secretText matches settings that contain a secret themselves, not the path of one.
var secretText = regexp.MustCompile(
	`(?im)^\s*(password|secret|token)\s*=|PRIVATE KEY|://[^/@\s"]*:[^/@\s"]*@|requirepass`)

func TestSecretsAreOnlyReferences(t *testing.T) {
	for name, values := range valueFiles(t) {
		found := objectsOf(t, values)
		for _, document := range found.documents {
			if secretText.Match(document) {
				t.Errorf("%s: a secret in an object\n%s", name, document)
			}
		}
		for _, pod := range found.pods {
			for _, container := range pod.containers() {
				for _, variable := range container.Env {
					isSecret := strings.Contains(variable.Name, "ORIGIN")
					source := variable.ValueFrom
					isReference := source != nil && source.SecretKeyRef != nil
					if isSecret != isReference || !isReference && source != nil && source.FieldRef == nil {
						t.Errorf("%s: variable %s", name, variable.Name)
					}
				}
			}
		}
	}
}

func TestNetworkPoliciesCloseEveryPod(t *testing.T) {
	for name, values := range valueFiles(t) {
		found := objectsOf(t, values)
		for _, pod := range found.pods {
			if pod.kind == "Deployment" {
				continue
			}
			matches := 0
			for _, policy := range found.policies {
				if !isSubset(policy.Spec.PodSelector.MatchLabels, pod.Labels) {
					continue
				}
				matches++
				if len(policy.Spec.PolicyTypes) != 2 {
					t.Errorf("%s: %s: policy types %v", name, policy.Name, policy.Spec.PolicyTypes)
				}
				for _, rule := range policy.Spec.Ingress {
					if len(rule.From) == 0 || len(rule.Ports) == 0 {
						t.Errorf("%s: %s: open to all", name, policy.Name)
					}
				}
			}
			if matches != 1 {
				t.Errorf("%s: %s: %d network policies select it", name, pod.name, matches)
			}
		}
	}
}

func isSubset(part, whole map[string]string) bool {
	for name, value := range part {
		if whole[name] != value {
			return false
		}
	}
	return len(part) > 0
}
