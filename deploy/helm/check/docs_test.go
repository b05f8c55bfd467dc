package check

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/strvals"
)

// pages are the pages of the book that show values of the chart.
var pages = []string{"kubernetes.md", "cluster.md"}

// blocks returns the code blocks of a language in a page.
func blocks(t *testing.T, name, language string) []string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	found := []string{}
	for _, block := range strings.Split(string(page), "```"+language+"\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		found = append(found, text)
	}
	if len(found) == 0 {
		t.Fatalf("%s: no blocks of %s", name, language)
	}
	return found
}

func TestValuesOfThePageWork(t *testing.T) {
	validator := newValidator(t)
	count := 0
	all := append(blocks(t, pages[0], "yaml"), blocks(t, pages[1], "yaml")...)
	for _, block := range all {
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
			validate(t, validator, "docs", document)
		}
		count++
	}
	if count < 8 {
		t.Errorf("only %d blocks of values", count)
	}
}

// installation returns the words of the first command of a page that installs the chart.
func installation(t *testing.T, page string) []string {
	t.Helper()
	for _, block := range blocks(t, page, "sh") {
		for _, line := range strings.Split(strings.ReplaceAll(block, "\\\n", " "), "\n") {
			if words := strings.Fields(line); len(words) > 3 && words[1] == "upgrade" {
				return words
			}
		}
	}
	t.Fatal("no command that installs")
	return nil
}

func TestInstallPrintsWhatThePagesShow(t *testing.T) {
	for _, page := range pages {
		words := installation(t, page)
		values := map[string]any{}
		for i, word := range words {
			if word != "--set" {
				continue
			}
			if err := strvals.ParseInto(strings.Trim(words[i+1], "'"), values); err != nil {
				t.Fatal(err)
			}
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
		isShown := func(text string) bool { return strings.TrimSpace(text) == notes }
		if !slices.ContainsFunc(blocks(t, page, "text"), isShown) {
			t.Errorf("%s does not show:\n%s", page, notes)
		}
		image := objectsOf(t, values).pods[0].Spec.Containers[0].Image
		if !slices.ContainsFunc(blocks(t, pages[0], "sh"), func(text string) bool {
			return strings.Contains(text, "docker push "+image)
		}) {
			t.Errorf("%s does not push %s", pages[0], image)
		}
	}
}

func TestPageHasTheMemoryLimit(t *testing.T) {
	values, err := chartutil.ReadValues([]byte(blocks(t, pages[0], "yaml")[0]))
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
		"cluster/cache": "132Mi", "store/store": "644Mi", "chunks/chunks": "661Mi",
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
