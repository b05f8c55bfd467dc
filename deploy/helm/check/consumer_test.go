package check

import (
	"os"
	"path/filepath"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
)

// The chart of another program includes the sidecar, as docs/kubernetes.md shows.
func TestOtherChartsIncludeTheSidecar(t *testing.T) {
	consumer, err := loader.LoadDir("testdata/consumer")
	if err != nil {
		t.Fatal(err)
	}
	consumer.AddDependency(loadChart(t))
	files, err := render(consumer, chartutil.Values{})
	if err != nil {
		t.Fatal(err)
	}
	documents := manifests(t, files)
	validator := newValidator(t)
	for _, document := range documents {
		validate(t, validator, "consumer", document)
	}
	found := decode(t, documents)
	if len(found.pods) != 1 || len(found.services) != 0 || len(found.accounts) != 0 {
		t.Errorf("objects of the disabled cache: %d pods, %d services, %d accounts",
			len(found.pods), len(found.services), len(found.accounts))
	}
	pod := &found.pods[0]
	for _, rule := range restricted(pod) {
		t.Errorf("the restricted profile forbids: %s", rule)
	}
	node := newNode(t)
	// The program of the shop is not run, only what comes before it.
	pod.Spec.Containers = nil
	running := node.run(found, pod)
	snapshot := filepath.Join(node.volume("snapshots"), "users/users.nut")
	if _, err := os.Stat(snapshot); err != nil {
		t.Error(err)
	}
	node.stop(running)
}
