package check

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/yannh/kubeconform/pkg/resource"
	"github.com/yannh/kubeconform/pkg/validator"
)

// schemaFolder has the schemas of the kinds of Kubernetes, made once in a run of the tests.
var schemaFolder string

// kinds are the objects that the chart can have, and the packages of their types.
var kinds = map[string]string{
	"ConfigMap":             "k8s.io/api/core/v1",
	"PersistentVolumeClaim": "k8s.io/api/core/v1",
	"Service":               "k8s.io/api/core/v1",
	"ServiceAccount":        "k8s.io/api/core/v1",
	"DaemonSet":             "k8s.io/api/apps/v1",
	"Deployment":            "k8s.io/api/apps/v1",
	"StatefulSet":           "k8s.io/api/apps/v1",
	"CronJob":               "k8s.io/api/batch/v1",
	"NetworkPolicy":         "k8s.io/api/networking/v1",
	"PodDisruptionBudget":   "k8s.io/api/policy/v1",
}

// plainTypes are types whose JSON is not that of their fields.
var plainTypes = map[string]schema{
	"Time":         {"type": "string", "format": "date-time"},
	"MicroTime":    {"type": "string", "format": "date-time"},
	"Duration":     {"type": "string"},
	"Quantity":     {"type": []any{"string", "number"}},
	"IntOrString":  {"type": []any{"string", "integer"}},
	"FieldsV1":     {"type": "object"},
	"RawExtension": {"type": "object"},
}

type schema map[string]any

// types reads the Go source of the Kubernetes API and makes JSON schemas of its types. Unlike
// reflection, it sees which fields are optional and which values an enumeration has.
type types struct {
	t        *testing.T
	packages map[string]*typePackage
	made     schema
}

// typePackage is one package: its types with their imports, and the constants of each type.
type typePackage struct {
	specs   map[string]*ast.TypeSpec
	docs    map[string]string
	imports map[string]map[string]string
	values  map[string][]any
}

func (types *types) load(name string) *typePackage {
	if loaded := types.packages[name]; loaded != nil {
		return loaded
	}
	folder := folderOf(types.t, name)
	loaded := &typePackage{map[string]*ast.TypeSpec{}, map[string]string{},
		map[string]map[string]string{}, map[string][]any{}}
	notTests := func(info fs.FileInfo) bool { return !strings.HasSuffix(info.Name(), "_test.go") }
	//lint:ignore SA1019 types are not checked, only read
	parsed, err := parser.ParseDir(token.NewFileSet(), folder, notTests, parser.ParseComments)
	if err != nil {
		types.t.Fatal(err)
	}
	for _, files := range parsed {
		for _, file := range files.Files {
			loaded.add(file)
		}
	}
	types.packages[name] = loaded
	return loaded
}

func (loaded *typePackage) add(file *ast.File) {
	imports := map[string]string{}
	for _, line := range file.Imports {
		name, _ := strconv.Unquote(line.Path.Value)
		alias := path.Base(name)
		if line.Name != nil {
			alias = line.Name.Name
		}
		imports[alias] = name
	}
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				loaded.specs[spec.Name.Name] = spec
				loaded.docs[spec.Name.Name] = group.Doc.Text() + comments(group.Doc)
				loaded.imports[spec.Name.Name] = imports
			case *ast.ValueSpec:
				loaded.addConstant(spec)
			}
		}
	}
}

func (loaded *typePackage) addConstant(spec *ast.ValueSpec) {
	kind, ok := spec.Type.(*ast.Ident)
	if !ok || len(spec.Values) != 1 {
		return
	}
	if literal, ok := spec.Values[0].(*ast.BasicLit); ok && literal.Kind == token.STRING {
		value, _ := strconv.Unquote(literal.Value)
		loaded.values[kind.Name] = append(loaded.values[kind.Name], value)
	}
}

// comments returns the lines of a comment with those that Text leaves out, such as +optional.
func comments(group *ast.CommentGroup) string {
	lines := ""
	if group != nil {
		for _, line := range group.List {
			lines += line.Text + "\n"
		}
	}
	return lines
}

// reference returns a reference to the schema of a named type, and makes that schema.
func (types *types) reference(home, name string) schema {
	if plain, ok := plainTypes[name]; ok {
		return plain
	}
	key := strings.ReplaceAll(home, "/", ".") + "." + name
	if _, ok := types.made[key]; !ok {
		types.made[key] = schema{}
		loaded := types.load(home)
		spec := loaded.specs[name]
		if spec == nil {
			types.t.Fatalf("no type %s in %s", name, home)
		}
		made := types.expression(home, name, spec.Type)
		values := loaded.values[name]
		if strings.Contains(loaded.docs[name], "+enum") && len(values) > 0 {
			made["enum"] = values
		}
		types.made[key] = made
	}
	return schema{"$ref": "#/definitions/" + key}
}

// expression returns the schema of a type expression in the declaration of a type.
func (types *types) expression(home, owner string, expression ast.Expr) schema {
	switch expression := expression.(type) {
	case *ast.StarExpr:
		return types.expression(home, owner, expression.X)
	case *ast.SelectorExpr:
		alias := expression.X.(*ast.Ident).Name
		return types.reference(types.load(home).imports[owner][alias], expression.Sel.Name)
	case *ast.ArrayType:
		if item, ok := expression.Elt.(*ast.Ident); ok && item.Name == "byte" {
			return schema{"type": "string"}
		}
		return schema{"type": "array", "items": types.expression(home, owner, expression.Elt)}
	case *ast.MapType:
		value := types.expression(home, owner, expression.Value)
		return schema{"type": "object", "additionalProperties": value}
	case *ast.StructType:
		made := schema{"type": "object", "additionalProperties": false}
		properties, required := schema{}, []any{}
		types.fields(home, owner, expression, properties, &required)
		made["properties"] = properties
		if len(required) > 0 {
			made["required"] = required
		}
		return made
	case *ast.Ident:
		return types.identifier(home, expression.Name)
	}
	types.t.Fatalf("%s.%s: a type of kind %T", home, owner, expression)
	return nil
}

func (types *types) identifier(home, name string) schema {
	switch name {
	case "string":
		return schema{"type": "string"}
	case "bool":
		return schema{"type": "boolean"}
	case "int", "int32", "int64", "uint8", "uint16", "uint32", "uint64":
		return schema{"type": "integer"}
	case "float64":
		return schema{"type": "number"}
	}
	return types.reference(home, name)
}

// fields adds the fields of a structure, and those of the structures that it embeds.
func (types *types) fields(
	home, owner string, of *ast.StructType, properties schema, required *[]any,
) {
	for _, field := range of.Fields.List {
		if field.Tag == nil {
			continue
		}
		tag, _ := strconv.Unquote(field.Tag.Value)
		name, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if name == "-" || (name == "" && len(field.Names) > 0) {
			continue
		}
		if name == "" {
			types.inline(home, owner, field.Type, properties, required)
			continue
		}
		properties[name] = types.expression(home, owner, field.Type)
		isOptional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		if !isOptional && !strings.Contains(comments(field.Doc), "+optional") {
			*required = append(*required, name)
		}
	}
}

func (types *types) inline(
	home, owner string, embedded ast.Expr, properties schema, required *[]any,
) {
	name := ""
	switch embedded := embedded.(type) {
	case *ast.Ident:
		name = embedded.Name
	case *ast.SelectorExpr:
		home = types.load(home).imports[owner][embedded.X.(*ast.Ident).Name]
		name = embedded.Sel.Name
	}
	loaded := types.load(home)
	if body, ok := loaded.specs[name].Type.(*ast.StructType); ok {
		types.fields(home, name, body, properties, required)
	}
}

// folderOf returns the folder of a package in the module cache.
func folderOf(t *testing.T, name string) string {
	t.Helper()
	module := strings.Join(strings.SplitN(name, "/", 3)[:2], "/")
	output, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("go list %s: %v", module, err)
	}
	folder := strings.TrimSpace(string(output))
	return filepath.Join(folder, strings.TrimPrefix(name, module))
}

// newValidator returns kubeconform with the schemas of this version of Kubernetes.
func newValidator(t *testing.T) validator.Validator {
	t.Helper()
	if schemaFolder == "" {
		writeSchemas(t)
	}
	location := schemaFolder + "/{{ .ResourceKind }}.json"
	made, err := validator.New([]string{location}, validator.Opts{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func writeSchemas(t *testing.T) {
	t.Helper()
	folder, err := os.MkdirTemp("", "nuthatch-schemas-")
	if err != nil {
		t.Fatal(err)
	}
	schemaFolder = folder
	types := &types{t, map[string]*typePackage{}, schema{}}
	roots := map[string]schema{}
	for kind, home := range kinds {
		roots[kind] = types.reference(home, kind)
	}
	for kind, root := range roots {
		root["$schema"] = "http://json-schema.org/draft-07/schema#"
		root["definitions"] = types.made
		text, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, filepath.Join(folder, strings.ToLower(kind)+".json"), text)
	}
	monitor, err := os.ReadFile("testdata/servicemonitor.json")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(folder, "servicemonitor.json"), monitor)
}

func writeFile(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func validate(t *testing.T, of validator.Validator, name string, document []byte) {
	t.Helper()
	result := of.ValidateResource(resource.Resource{Path: name, Bytes: document})
	if result.Status != validator.Valid {
		t.Errorf("%s: status %d: %v\n%s", name, result.Status, result.Err, document)
	}
}

func TestSchemasRefuseWhatKubernetesWould(t *testing.T) {
	of := newValidator(t)
	good := `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ClusterIP,
  ports: [{port: 1}]}}`
	validate(t, of, "good", []byte(good))
	for _, change := range [][2]string{
		{"spec:", "spek:"},
		{"port: 1", "port: one"},
		{"port: 1", "prot: 1"},
		{"{port: 1}", "{name: a}"},
		{"type: ClusterIP", "type: Cluster"},
		{"name: a", "named: a"},
	} {
		bad := bytes.Replace([]byte(good), []byte(change[0]), []byte(change[1]), 1)
		result := of.ValidateResource(resource.Resource{Path: "bad", Bytes: bad})
		if result.Status != validator.Invalid {
			t.Errorf("%s: status %d: %v", change[1], result.Status, result.Err)
		}
	}
}
