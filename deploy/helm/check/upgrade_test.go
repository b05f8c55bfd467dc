package check

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// cluster has one object, which any query returns.
type cluster struct {
	dynamic.NamespaceableResourceInterface
	object map[string]any
}

func (found cluster) GetClientFor(
	_, _ string,
) (dynamic.NamespaceableResourceInterface, bool, error) {
	return found, true, nil
}

func (found cluster) Namespace(string) dynamic.ResourceInterface {
	return found
}

func (found cluster) Get(
	context.Context, string, meta.GetOptions, ...string,
) (*unstructured.Unstructured, error) {
	return &unstructured.Unstructured{Object: found.object}, nil
}

func TestAnUpgradeWithAnotherVolumeSizeIsRefused(t *testing.T) {
	const dumps = "cache.warmRestart=true,"
	const unchanged = "cache.persistence.size: expected %s, the size of the volumes, found %s"
	const tooSmall = "cache.persistence.size: expected volumes of at least %s, found volumes of " +
		"%s, whose size a StatefulSet cannot change; enlarge them as docs/kubernetes.md says in " +
		"Upgrades, or lower cache.memory"
	// By default the volume has 1 GiB more than four times the memory; it had twice the memory.
	for _, upgrade := range []struct{ size, values, message string }{
		{"5Gi", dumps + "cache.memory=1GiB", ""},
		{"5Gi", dumps + "cache.memory=2GiB", fmt.Sprintf(tooSmall, "8192Mi", "5Gi")},
		{"3Gi", dumps + "cache.memory=1GiB", fmt.Sprintf(tooSmall, "4096Mi", "3Gi")},
		{"3Gi", dumps + "cache.memory=512MiB", ""},
		{"3Gi", "cache.memory=1GiB", fmt.Sprintf(unchanged, "3Gi", "5120Mi")},
		{"3Gi", "cache.memory=1GiB,cache.persistence.size=3Gi", ""},
	} {
		template := map[string]any{
			"metadata": map[string]any{"name": "data"},
			"spec": map[string]any{"resources": map[string]any{
				"requests": map[string]any{"storage": upgrade.size}}},
		}
		object := map[string]any{"spec": map[string]any{"volumeClaimTemplates": []any{template}}}
		values := given(t, "cache.auth.existingSecret=p,cache.persistence.enabled=true,"+
			upgrade.values)
		options := chartutil.ReleaseOptions{Name: release, Namespace: namespace, IsUpgrade: true}
		loaded := loadChart(t)
		all, err := chartutil.ToRenderValues(loaded, values, options, chartutil.DefaultCapabilities)
		if err != nil {
			t.Fatal(err)
		}
		_, err = engine.RenderWithClientProvider(loaded, all, cluster{object: object})
		message := upgrade.message
		if (err == nil) != (message == "") || err != nil && !strings.Contains(err.Error(), message) {
			t.Errorf("%s: expected %q, found %v", upgrade.values, message, err)
		}
	}
}

func TestTheCacheReachesACollector(t *testing.T) {
	values := given(t, "cache.auth.existingSecret=p,cache.credentialsSecret=collector,"+
		"networkPolicy.egress[0].ports[0].port=4318")
	found := objectsOf(t, values)
	for _, policy := range found.policies {
		if len(policy.Spec.Egress) != 1 || policy.Spec.Egress[0].Ports[0].Port.IntValue() != 4318 {
			t.Errorf("%s: egress %v", policy.Name, policy.Spec.Egress)
		}
	}
	for _, pod := range found.pods {
		from := pod.Spec.Containers[0].EnvFrom
		if len(from) != 1 || from[0].SecretRef.Name != "collector" {
			t.Errorf("%s: envFrom %v", pod.name, from)
		}
	}
}
