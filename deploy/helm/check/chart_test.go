// Package check tests the Helm chart with Helm's own libraries and with the real program.
package check

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	chartFolder = "../nuthatch"
	release     = "r"
	namespace   = "shop"
)

// valueFiles returns the value files of the chart, by name.
func valueFiles(t *testing.T) map[string]chartutil.Values {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(chartFolder, "ci", "*.yaml"))
	if err != nil || len(paths) < 8 {
		t.Fatalf("value files: %v, %v", paths, err)
	}
	files := map[string]chartutil.Values{}
	for _, path := range paths {
		values, err := chartutil.ReadValuesFile(path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		files[strings.TrimSuffix(filepath.Base(path), "-values.yaml")] = values
	}
	return files
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	loaded, err := loader.LoadDir(chartFolder)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// render returns the rendered files of a chart, by name.
func render(loaded *chart.Chart, values chartutil.Values) (map[string]string, error) {
	if err := chartutil.ProcessDependencies(loaded, values); err != nil {
		return nil, err
	}
	options := chartutil.ReleaseOptions{Name: release, Namespace: namespace, IsInstall: true}
	all, err := chartutil.ToRenderValues(loaded, values, options, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(loaded, all)
}

// manifests returns the documents of rendered files, without the notes.
func manifests(t *testing.T, files map[string]string) [][]byte {
	t.Helper()
	names := []string{}
	for name := range files {
		if strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	documents := [][]byte{}
	for _, name := range names {
		decoder := yaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(files[name])))
		for {
			buffer := make([]byte, 1<<20)
			n, err := decoder.Read(buffer)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(bytes.TrimSpace(stripComments(buffer[:n]))) > 0 {
				documents = append(documents, buffer[:n])
			}
		}
	}
	return documents
}

func stripComments(text []byte) []byte {
	lines := bytes.Split(text, []byte("\n"))
	return bytes.Join(slices.DeleteFunc(lines, func(line []byte) bool {
		return bytes.HasPrefix(bytes.TrimSpace(line), []byte("#"))
	}), []byte("\n"))
}

// objectsOf renders the chart and decodes what it renders.
func objectsOf(t *testing.T, values chartutil.Values) *objects {
	t.Helper()
	files, err := render(loadChart(t), values)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, manifests(t, files))
}

func TestChartPassesLint(t *testing.T) {
	files := valueFiles(t)
	// In lint, refusals are messages only, so the defaults pass, too.
	files["none"] = chartutil.Values{}
	for name, values := range files {
		linter := lint.AllWithKubeVersion(chartFolder, values, namespace, nil)
		for _, message := range linter.Messages {
			isIcon := strings.Contains(message.Error(), "icon is recommended")
			if !isIcon && message.Severity > support.UnknownSev {
				t.Errorf("%s: %v", name, message)
			}
		}
	}
}

func TestValueFilesAreValidObjects(t *testing.T) {
	validator := newValidator(t)
	for name, values := range valueFiles(t) {
		files, err := render(loadChart(t), values)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		documents := manifests(t, files)
		if len(documents) < 4 {
			t.Errorf("%s: only %d objects", name, len(documents))
		}
		for _, document := range documents {
			validate(t, validator, name, document)
			if bytes.Contains(document, []byte("<no value>")) {
				t.Errorf("%s: a value that does not exist\n%s", name, document)
			}
		}
		if notes := files["nuthatch/templates/NOTES.txt"]; strings.TrimSpace(notes) == "" {
			t.Errorf("%s: no notes", name)
		}
	}
}

func TestAllObjectsOfTheChartAreTested(t *testing.T) {
	// Each template renders something in at least one value file.
	unused := map[string]bool{}
	for _, file := range loadChart(t).Templates {
		if strings.HasSuffix(file.Name, ".yaml") {
			unused["nuthatch/"+file.Name] = true
		}
	}
	for name, values := range valueFiles(t) {
		files, err := render(loadChart(t), values)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for file, text := range files {
			if strings.TrimSpace(text) != "" {
				delete(unused, file)
			}
		}
	}
	if len(unused) > 0 {
		t.Errorf("templates that no value file of ci/ renders: %v", unused)
	}
}

func TestMain(m *testing.M) {
	code := m.Run()
	if schemaFolder != "" {
		_ = os.RemoveAll(schemaFolder)
	}
	os.Exit(code)
}
