package check

import (
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/strvals"
)

// given returns values as of `helm --set`.
func given(t *testing.T, text string) chartutil.Values {
	t.Helper()
	values, err := strvals.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return values
}

func TestALogValueWithALineBreakIsOneArgument(t *testing.T) {
	values := given(t, "cache.enabled=false,chunks.enabled=true,chunks.auth.enabled=false,"+
		"chunks.origin=https://host/")
	values["log"] = "warn\n- --insecure-by-value"
	for _, pod := range objectsOf(t, values).pods {
		for _, container := range pod.containers() {
			if slices.Contains(container.Args, "--insecure-by-value") {
				t.Errorf("%s: a value is an argument of its own: %v", pod.name, container.Args)
			}
		}
	}
}

func TestNamesThatYAMLReadsAsOtherTypesAreTexts(t *testing.T) {
	values := given(t, "fullnameOverride=my.app,cache.auth.existingSecret=null1,"+
		"cache.priorityClassName=on")
	values["nameOverride"] = "123"
	values["image"] = map[string]any{"pullSecrets": []any{"1"}}
	cache := values["cache"].(map[string]any)
	cache["auth"] = map[string]any{"existingSecret": "123"}
	validator := newValidator(t)
	files, err := render(loadChart(t), values)
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range manifests(t, files) {
		validate(t, validator, "names", document)
		if strings.Contains(string(document), "my.app-") {
			t.Errorf("a name that a Service cannot have\n%s", document)
		}
	}
}

func TestLabelsAndChecksumsOfTheChartWin(t *testing.T) {
	values := given(t, "cache.auth.existingSecret=p")
	cache := values["cache"].(map[string]any)
	cache["podLabels"] = map[string]any{"app.kubernetes.io/name": "mine", "team": "shop"}
	cache["podAnnotations"] = map[string]any{"checksum/settings": "mine", "note": "a"}
	for _, pod := range objectsOf(t, values).pods {
		if pod.Labels["app.kubernetes.io/name"] != "nuthatch" || pod.Labels["team"] != "shop" {
			t.Errorf("labels: %v", pod.Labels)
		}
		if len(pod.Annotations["checksum/settings"]) != 64 || pod.Annotations["note"] != "a" {
			t.Errorf("annotations: %v", pod.Annotations)
		}
	}
}

func TestALineOfAQueryIsNoSetting(t *testing.T) {
	values := given(t, job+"populate.jobs.a.env.AWS_WEB_IDENTITY_TOKEN_FILE=/x")
	jobs := values["populate"].(map[string]any)["jobs"].(map[string]any)
	jobs["a"].(map[string]any)["job"] = "[[source]]\nquery = \"\"\"\nselect * from t where\n" +
		"memory = 3 and\noutput = 3\"\"\"\n[other]\na = 1\n"
	if _, err := render(loadChart(t), values); err != nil {
		t.Error(err)
	}
}

func TestNoReplicasAreFine(t *testing.T) {
	files, err := render(loadChart(t), given(t, "cache.auth.existingSecret=p,cache.replicas=0"))
	if err != nil || strings.Contains(files["nuthatch/templates/NOTES.txt"], "-1") {
		t.Errorf("%v, %v", err, files["nuthatch/templates/NOTES.txt"])
	}
}
