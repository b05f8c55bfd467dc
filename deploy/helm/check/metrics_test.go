package check

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
)

// labelCharacter matches what Prometheus replaces by "_" in the labels of Kubernetes.
var labelCharacter = regexp.MustCompile(`[^a-zA-Z0-9_]`)

// jobOf returns the job that Prometheus gives to the targets of a service.
func jobOf(service *core.Service, rules []relabeling) string {
	job := service.Name
	for _, rule := range rules {
		value := ""
		for name, text := range service.Labels {
			label := "__meta_kubernetes_service_label_" + labelCharacter.ReplaceAllString(name, "_")
			if slices.Contains(rule.SourceLabels, label) {
				value = text
			}
		}
		if rule.TargetLabel == "job" {
			job = strings.ReplaceAll(rule.Replacement, "$1", value)
		}
	}
	return job
}

func TestJobsAreThoseOfTheAlerts(t *testing.T) {
	rules, err := os.ReadFile("../../prometheus/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`up\{job=~"([^"]*)"\}`).FindSubmatch(rules)
	if match == nil {
		t.Fatal("no alert selects jobs")
	}
	expected := regexp.MustCompile("^(?:" + string(match[1]) + ")$")
	found := objectsOf(t, valueFiles(t)["everything"])
	jobs := []string{}
	for i := range found.services {
		service := &found.services[i]
		for _, endpoint := range found.monitors[0].Spec.Endpoints {
			if slices.ContainsFunc(service.Spec.Ports, func(port core.ServicePort) bool {
				return port.Name == endpoint.Port
			}) {
				jobs = append(jobs, jobOf(service, endpoint.Relabelings))
			}
		}
	}
	slices.Sort(jobs)
	if text := strings.Join(jobs, " "); text !=
		"nuthatch-cache nuthatch-chunks nuthatch-follow nuthatch-follower nuthatch-store" {
		t.Errorf("jobs %s", text)
	}
	for _, job := range jobs {
		if !expected.MatchString(job) {
			t.Errorf("no alert selects the job %s", job)
		}
	}
}

// Prometheus needs no open addresses for clients.
func TestMetricsDoNotOpenClients(t *testing.T) {
	for _, name := range []string{"follow-sidecar", "follower-daemonset"} {
		found := objectsOf(t, valueFiles(t)[name])
		text := ""
		for _, config := range found.configs {
			text += config.Data["nuthatch.toml"] + "\n"
		}
		for _, container := range found.pods[0].containers() {
			text += strings.Join(container.Args, "\n") + "\n"
		}
		if !regexp.MustCompile(`(?m)^(--)?admin-insecure`).MatchString(text) {
			t.Errorf("%s: the admin endpoint is not open:\n%s", name, text)
		}
		if regexp.MustCompile(`(?m)^(--)?insecure`).MatchString(text) {
			t.Errorf("%s: open for clients without a login:\n%s", name, text)
		}
	}
}
