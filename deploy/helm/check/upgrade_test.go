package check

import (
	"context"
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
	template := map[string]any{
		"metadata": map[string]any{"name": "data"},
		"spec": map[string]any{"resources": map[string]any{
			"requests": map[string]any{"storage": "5Gi"}}},
	}
	object := map[string]any{"spec": map[string]any{"volumeClaimTemplates": []any{template}}}
	// By default the volume has 1 GiB more than four times the memory.
	for memory, message := range map[string]string{
		"1GiB": "",
		"2GiB": "cache.persistence.size: expected 5Gi, the size of the volumes, found 9216Mi",
	} {
		values := given(t, "cache.auth.existingSecret=p,cache.warmRestart=true,"+
			"cache.persistence.enabled=true,cache.memory="+memory)
		options := chartutil.ReleaseOptions{Name: release, Namespace: namespace, IsUpgrade: true}
		loaded := loadChart(t)
		all, err := chartutil.ToRenderValues(loaded, values, options, chartutil.DefaultCapabilities)
		if err != nil {
			t.Fatal(err)
		}
		_, err = engine.RenderWithClientProvider(loaded, all, cluster{object: object})
		if (err == nil) != (message == "") || err != nil && !strings.Contains(err.Error(), message) {
			t.Errorf("%s: expected %q, found %v", memory, message, err)
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
