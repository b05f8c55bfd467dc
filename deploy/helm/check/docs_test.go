package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/strvals"
)

// blocks returns the code blocks of a language in the page.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for _, block := range strings.Split(string(page), "```"+language+"\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		found = append(found, text)
	}
	if len(found) == 0 {
		t.Fatalf("no blocks of %s", language)
	}
	return found
}

func TestValuesOfThePageWork(t *testing.T) {
	validator := newValidator(t)
	count := 0
	for _, block := range blocks(t, "yaml") {
		if file, text, ok := strings.Cut(block, ".yaml\n"); ok && strings.HasPrefix(file, "# ") {
			path := filepath.Join("testdata/consumer", strings.TrimPrefix(file, "# ")+".yaml")
			expected, err := os.ReadFile(path)
			if err != nil || string(expected) != text {
				t.Errorf("%s differs from the page: %v", path, err)
			}
			continue
		}
		values, err := chartutil.ReadValues([]byte(block))
		if err != nil {
			t.Fatalf("%v\n%s", err, block)
		}
		files, err := render(loadChart(t), values)
		if err != nil {
			t.Errorf("%v\n%s", err, block)
			continue
		}
		for _, document := range manifests(t, files) {
			validate(t, validator, "docs/kubernetes.md", document)
		}
		count++
	}
	if count < 8 {
		t.Errorf("only %d blocks of values", count)
	}
}

func TestInstallPrintsWhatThePageShows(t *testing.T) {
	for _, line := range strings.Split(blocks(t, "sh")[0], "\n") {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "helm" {
			continue
		}
		values, err := strvals.Parse(words[len(words)-1])
		if err != nil {
			t.Fatal(err)
		}
		options := chartutil.ReleaseOptions{Name: words[3], Namespace: "default"}
		chart := loadChart(t)
		all, err := chartutil.ToRenderValues(chart, values, options, nil)
		if err != nil {
			t.Fatal(err)
		}
		files, err := engine.Render(chart, all)
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.TrimSpace(files["nuthatch/templates/NOTES.txt"])
		if expected := strings.TrimSpace(blocks(t, "text")[0]); notes != expected {
			t.Errorf("expected:\n%s\nfound:\n%s", expected, notes)
		}
		return
	}
	t.Error("no command that installs")
}

func TestPageHasTheMemoryLimit(t *testing.T) {
	values, err := chartutil.ReadValues([]byte(blocks(t, "yaml")[0]))
	if err != nil {
		t.Fatal(err)
	}
	limit := objectsOf(t, values).pods[0].Spec.Containers[0].Resources.Limits.Memory()
	if limit.String() != "8768Mi" {
		t.Errorf("the page says 8768 MiB, found %s", limit.String())
	}
}

func TestMemoryLimitsAreThoseOfThePage(t *testing.T) {
	expected := map[string]string{
		"defaults/cache": "1152Mi", "disk-tls/cache": "164Mi", "everything/cache": "1Gi",
		"follow-sidecar/cache": "388Mi", "follow-sidecar/follow": "384Mi",
		"follower-daemonset/follower": "384Mi", "populate/populate": "848Mi",
		"store/store": "644Mi", "chunks/chunks": "661Mi",
	}
	for name, values := range valueFiles(t) {
		for _, pod := range objectsOf(t, values).pods {
			for _, container := range pod.containers() {
				limit := container.Resources.Limits.Memory().String()
				place := name + "/" + container.Name
				if expected[place] != "" && expected[place] != limit {
					t.Errorf("%s: expected %s, found %s", place, expected[place], limit)
				}
			}
		}
	}
}
