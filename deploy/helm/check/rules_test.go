package check

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestProbesArePresent(t *testing.T) {
	for name, values := range valueFiles(t) {
		for _, pod := range objectsOf(t, values).pods {
			for _, container := range pod.containers() {
				missing := ""
				all := container.StartupProbe != nil && container.LivenessProbe != nil &&
					container.ReadinessProbe != nil
				switch container.Name {
				case "cache", "store", "chunks":
					if !all {
						missing = "a probe"
					}
				case "follow":
					// A sidecar whose data are old must not take the server down.
					if container.StartupProbe == nil || container.ReadinessProbe != nil {
						missing = "exactly a startup probe"
					}
				case "follower":
					if container.ReadinessProbe == nil || container.LivenessProbe != nil {
						missing = "exactly a readiness probe"
					}
				}
				if missing != "" {
					t.Errorf("%s: %s: expected %s", name, container.Name, missing)
				}
			}
		}
	}
}

var budgetLine = regexp.MustCompile(`(?m)^memory = "([0-9]+)([KMGT]?i?B?)"|^--memory=(\d+)(\w+)`)

// bytesOf returns the bytes of a size such as 64MiB.
func bytesOf(t *testing.T, number, unit string) int64 {
	t.Helper()
	shifts := map[string]uint{"": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}
	value, err := strconv.ParseInt(number, 10, 64)
	shift, ok := shifts[unit]
	if err != nil || !ok {
		t.Fatalf("size %s%s", number, unit)
	}
	return value << shift
}

func TestMemoryLimitsExceedBudgets(t *testing.T) {
	for name, values := range valueFiles(t) {
		found := objectsOf(t, values)
		for _, pod := range found.pods {
			for _, container := range pod.containers() {
				limit := container.Resources.Limits.Memory().Value()
				if limit == 0 || container.Resources.Requests.Memory().Value() == 0 {
					t.Errorf("%s: %s: no memory limit or request", name, container.Name)
				}
				text := strings.Join(container.Args, "\n")
				for _, volume := range pod.Spec.Volumes {
					isOwn := volume.Name == "settings" || volume.Name == "job"
					if isOwn && volume.ConfigMap != nil {
						for _, file := range found.configs[volume.ConfigMap.Name].Data {
							text += "\n" + file
						}
					}
				}
				match := budgetLine.FindStringSubmatch(text)
				if match == nil {
					continue
				}
				budget := bytesOf(t, match[1]+match[3], match[2]+match[4])
				if container.Name != "follow" && container.Name != "follow-once" &&
					limit < budget+budget/16+(64<<20) {
					t.Errorf("%s: %s: limit %d, budget %d", name, container.Name, limit, budget)
				}
			}
		}
	}
}

func TestPodsHaveTimeToDrain(t *testing.T) {
	// preStop 5 s, drain-ms 10 s, dump-ms 5 s, and 15 s for a sync.
	// A node of a cluster moves its slots before, in 20 s and in 30 s.
	expected := map[string]int64{"defaults": 30, "disk-tls": 35, "store": 25, "chunks": 30,
		"cluster": 50, "cluster-tls": 60}
	for name, seconds := range expected {
		pod := objectsOf(t, valueFiles(t)[name]).pods[0]
		if found := *pod.Spec.TerminationGracePeriodSeconds; found != seconds {
			t.Errorf("%s: expected %d seconds, found %d", name, seconds, found)
		}
	}
}

func TestSelectorsMatchLabels(t *testing.T) {
	for name, values := range valueFiles(t) {
		found := objectsOf(t, values)
		for _, pod := range found.pods {
			if pod.selector != nil && !isSubset(pod.selector, pod.Labels) {
				t.Errorf("%s: %s does not select its pods", name, pod.name)
			}
			if pod.governing != "" && !slices.ContainsFunc(found.services,
				func(of core.Service) bool { return of.Name == pod.governing }) {
				t.Errorf("%s: %s: no service %s", name, pod.name, pod.governing)
			}
		}
		for _, service := range found.services {
			pods := found.selected(service.Spec.Selector)
			if len(pods) != 1 {
				t.Errorf("%s: service %s selects %d workloads", name, service.Name, len(pods))
				continue
			}
			for _, port := range service.Spec.Ports {
				if !hasPort(pods[0], port.TargetPort.StrVal, port.Port) {
					t.Errorf("%s: %s: no container has port %s", name, service.Name, port.Name)
				}
			}
		}
		for _, budget := range found.budgets {
			if pods := found.selected(budget.Spec.Selector.MatchLabels); len(pods) != 1 {
				t.Errorf("%s: %s selects %d workloads", name, budget.Name, len(pods))
			}
		}
		for _, policy := range found.policies {
			if pods := found.selected(policy.Spec.PodSelector.MatchLabels); len(pods) == 0 {
				t.Errorf("%s: %s selects nothing", name, policy.Name)
			}
		}
		checkMonitors(t, name, found)
	}
}

// checkMonitors checks that Prometheus finds each container with metrics exactly once.
func checkMonitors(t *testing.T, name string, found *objects) {
	t.Helper()
	for _, monitor := range found.monitors {
		targets := map[string]int{}
		for _, service := range found.services {
			if !isSubset(monitor.Spec.Selector.MatchLabels, service.Labels) {
				t.Errorf("%s: the monitor does not select %s", name, service.Name)
			}
			for _, port := range service.Spec.Ports {
				for _, endpoint := range monitor.Spec.Endpoints {
					if endpoint.Port == port.Name {
						targets[service.Spec.Selector["app.kubernetes.io/component"]+port.Name]++
					}
				}
			}
		}
		for _, pod := range found.pods {
			for _, container := range pod.containers() {
				for _, port := range container.Ports {
					isMetrics := strings.HasSuffix(port.Name, "metrics")
					if isMetrics && targets[pod.component()+port.Name] != 1 {
						t.Errorf("%s: %s: scraped %d times", name, container.Name,
							targets[pod.component()+port.Name])
					}
				}
			}
		}
	}
}

func (found *objects) selected(selector map[string]string) []*pod {
	pods := []*pod{}
	for i := range found.pods {
		if isSubset(selector, found.pods[i].Labels) {
			pods = append(pods, &found.pods[i])
		}
	}
	return pods
}

func hasPort(pod *pod, name string, number int32) bool {
	for _, container := range pod.containers() {
		for _, port := range container.Ports {
			if port.Name == name && port.ContainerPort == number {
				return true
			}
		}
	}
	return false
}

func TestNamesAndPortsAreValid(t *testing.T) {
	for name, values := range valueFiles(t) {
		for _, pod := range objectsOf(t, values).pods {
			for _, problem := range validation.IsDNS1123Label(pod.name) {
				t.Errorf("%s: %s: %s", name, pod.name, problem)
			}
			names := map[string]bool{}
			for _, volume := range pod.Spec.Volumes {
				names[volume.Name] = true
			}
			for _, claim := range pod.claims {
				names[claim.Name] = true
			}
			for _, container := range pod.containers() {
				for _, port := range container.Ports {
					for _, problem := range validation.IsValidPortName(port.Name) {
						t.Errorf("%s: port %s: %s", name, port.Name, problem)
					}
				}
				for _, mount := range container.VolumeMounts {
					if !names[mount.Name] {
						t.Errorf("%s: %s: no volume %s", name, container.Name, mount.Name)
					}
				}
			}
		}
	}
}

func TestSettingsRestartThePods(t *testing.T) {
	values := valueFiles(t)["disk-tls"]
	const checksum = "checksum/settings"
	before := objectsOf(t, values).pods[0].Annotations[checksum]
	values["cache"].(map[string]any)["settings"] = map[string]any{"max-clients": 5}
	after := objectsOf(t, values).pods[0].Annotations[checksum]
	if before == "" || before == after {
		t.Errorf("a new setting leaves the pods: %s, %s", before, after)
	}
}
