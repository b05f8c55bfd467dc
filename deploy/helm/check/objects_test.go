package check

import (
	"testing"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// objects are decoded manifests.
type objects struct {
	pods      []pod
	configs   map[string]core.ConfigMap
	accounts  []core.ServiceAccount
	services  []core.Service
	budgets   []policy.PodDisruptionBudget
	policies  []networking.NetworkPolicy
	monitors  []serviceMonitor
	documents [][]byte
}

// pod is the template of a workload's pods.
type pod struct {
	kind, name string
	selector   map[string]string
	claims     []core.PersistentVolumeClaim
	governing  string
	// Seconds that a new pod is ready before the next one is replaced.
	minReady int32
	core.PodTemplateSpec
}

type serviceMonitor struct {
	Spec struct {
		Selector  struct{ MatchLabels map[string]string }
		Endpoints []struct {
			Port        string
			Relabelings []relabeling
		}
	}
}

type relabeling struct {
	SourceLabels             []string
	TargetLabel, Replacement string
}

// servers are containers that clients connect to, by component.
var servers = map[string]string{"cache": "cache", "store": "store", "chunks": "chunks"}

func (pod *pod) component() string {
	return pod.Labels["app.kubernetes.io/component"]
}

// containers returns all containers, those of the start included.
func (pod *pod) containers() []core.Container {
	return append(append([]core.Container{}, pod.Spec.InitContainers...), pod.Spec.Containers...)
}

func decode(t *testing.T, documents [][]byte) *objects {
	t.Helper()
	found := &objects{configs: map[string]core.ConfigMap{}, documents: documents}
	for _, document := range documents {
		var kind struct{ Kind string }
		into(t, document, &kind)
		found.add(t, kind.Kind, document)
	}
	return found
}

func into(t *testing.T, document []byte, value any) {
	t.Helper()
	if err := yaml.Unmarshal(document, value); err != nil {
		t.Fatalf("%v\n%s", err, document)
	}
}

func (found *objects) add(t *testing.T, kind string, document []byte) {
	t.Helper()
	switch kind {
	case "StatefulSet":
		var of apps.StatefulSet
		into(t, document, &of)
		found.pods = append(found.pods, pod{kind, of.Name, of.Spec.Selector.MatchLabels,
			of.Spec.VolumeClaimTemplates, of.Spec.ServiceName, of.Spec.MinReadySeconds,
			of.Spec.Template})
	case "DaemonSet":
		var of apps.DaemonSet
		into(t, document, &of)
		found.pods = append(found.pods,
			pod{kind, of.Name, of.Spec.Selector.MatchLabels, nil, "", 0, of.Spec.Template})
	case "Deployment":
		var of apps.Deployment
		into(t, document, &of)
		found.pods = append(found.pods,
			pod{kind, of.Name, of.Spec.Selector.MatchLabels, nil, "", 0, of.Spec.Template})
	case "CronJob":
		var of batch.CronJob
		into(t, document, &of)
		template := of.Spec.JobTemplate.Spec.Template
		found.pods = append(found.pods, pod{kind, of.Name, nil, nil, "", 0, template})
	case "ConfigMap":
		var of core.ConfigMap
		into(t, document, &of)
		found.configs[of.Name] = of
	case "Service":
		found.services = appended(t, found.services, document)
	case "ServiceAccount":
		found.accounts = appended(t, found.accounts, document)
	case "PodDisruptionBudget":
		found.budgets = appended(t, found.budgets, document)
	case "NetworkPolicy":
		found.policies = appended(t, found.policies, document)
	case "ServiceMonitor":
		found.monitors = appended(t, found.monitors, document)
	case "PersistentVolumeClaim":
	default:
		t.Fatalf("an object of kind %q", kind)
	}
}

func appended[T any](t *testing.T, list []T, document []byte) []T {
	t.Helper()
	var value T
	into(t, document, &value)
	return append(list, value)
}
