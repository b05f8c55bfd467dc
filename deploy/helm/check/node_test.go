package check

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	core "k8s.io/api/core/v1"
)

// node runs the containers of pods as processes of the real program. Volumes are folders below it.
// Addresses for clients become sockets and ports of loopback, and admin endpoints sockets.
type node struct {
	t      *testing.T
	folder string
	keys   *fixtures
	// The name of the pod, if containers know it.
	podName string
	// What the node of a cluster connects to, and its own address. Nothing listens at the first one
	// by default.
	etcd, address string
}

// process is a container that runs.
type process struct {
	name    string
	command *exec.Cmd
	log     *bytes.Buffer
}

func newNode(t *testing.T) *node {
	t.Helper()
	// The path of a socket has at most 107 bytes.
	folder, err := os.MkdirTemp("", "nut-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	node := &node{t: t, folder: folder, keys: newFixtures(t, folder), etcd: "127.0.0.1:1"}
	node.address = "unix:" + folder + "/resp"
	node.keys.publish()
	return node
}

// program returns the path of the program that the build makes.
func program(t *testing.T) string {
	t.Helper()
	path := os.Getenv("NUTHATCH_COMMAND")
	if path == "" {
		path = "../../../target/debug/nuthatch"
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(absolute); err != nil {
		t.Fatalf("%v: build it, or set NUTHATCH_COMMAND", err)
	}
	return absolute
}

var (
	adminAddress = regexp.MustCompile(`(0\.0\.0\.0|127\.0\.0\.1):(946\d)`)
	respAddress  = regexp.MustCompile(`"0\.0\.0\.0:6379"`)
	etcdAddress  = regexp.MustCompile(`(etcds?)://[^/]*/`)
	address      = regexp.MustCompile(`0\.0\.0\.0:\d+`)
)

// local replaces the paths of a container by folders of the node, and its addresses by local ones.
func (node *node) local(container *core.Container, text string) string {
	for _, mount := range container.VolumeMounts {
		text = strings.ReplaceAll(text, mount.MountPath, node.volume(mount.Name))
	}
	for _, folder := range []string{"/published", "/input"} {
		text = strings.ReplaceAll(text, folder, node.folder+folder)
	}
	text = adminAddress.ReplaceAllString(text, "unix:"+node.folder+"/$2")
	text = respAddress.ReplaceAllString(text, `"`+node.address+`"`)
	text = etcdAddress.ReplaceAllString(text, "$1://"+node.etcd+"/")
	if strings.HasPrefix(text, "--announce=") && !strings.HasPrefix(node.address, "unix:") {
		text = "--announce=" + node.address
	}
	text = strings.ReplaceAll(text, "$(POD_NAME)", node.podName)
	return address.ReplaceAllString(text, "127.0.0.1:0")
}

func (node *node) volume(name string) string {
	return filepath.Join(node.folder, "volumes", name)
}

// mount makes the volumes of a container. Volumes with data stay, as those of claims do.
func (node *node) mount(found *objects, pod *pod, container *core.Container) {
	for _, mount := range container.VolumeMounts {
		folder := node.volume(mount.Name)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			node.t.Fatal(err)
		}
		for _, volume := range pod.Spec.Volumes {
			if volume.Name != mount.Name {
				continue
			}
			if volume.Secret != nil {
				node.keys.write(folder)
			}
			if volume.ConfigMap != nil {
				node.configure(found, container, folder, volume.ConfigMap)
			}
		}
	}
}

func (node *node) configure(
	found *objects, container *core.Container, folder string, of *core.ConfigMapVolumeSource,
) {
	config, ok := found.configs[of.Name]
	if !ok {
		node.t.Fatalf("no ConfigMap %s", of.Name)
	}
	for name, text := range config.Data {
		text = node.local(container, text)
		if strings.HasPrefix(name, "trust-") {
			text = string(node.keys.trustKey)
		}
		project(node.t, folder, name, []byte(text))
	}
}

// project writes a file as the kubelet does: in a folder of its own, with a link to it.
func project(t *testing.T, folder, name string, text []byte) {
	t.Helper()
	writeFile(t, filepath.Join(folder, "..data", name), text)
	link := filepath.Join(folder, name)
	if err := os.Symlink(filepath.Join("..data", name), link); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
}

// start runs a container, and waits for its startup or readiness probe if it has one.
func (node *node) start(found *objects, pod *pod, container *core.Container) *process {
	node.t.Helper()
	node.mount(found, pod, container)
	args := []string{}
	for _, arg := range container.Args {
		args = append(args, node.local(container, arg))
	}
	command := exec.Command(program(node.t), args...)
	// The image has no home and no folder for temporary files.
	command.Dir = "/"
	command.Env = []string{"TMPDIR=/nowhere"}
	for _, variable := range container.Env {
		value := variable.Value
		if source := variable.ValueFrom; source != nil && source.FieldRef != nil {
			value = node.podName
		} else if source != nil {
			value = "http://127.0.0.1:9/"
		}
		command.Env = append(command.Env, variable.Name+"="+value)
	}
	log := &bytes.Buffer{}
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		node.t.Fatal(err)
	}
	node.t.Cleanup(func() { _ = command.Process.Kill() })
	return &process{container.Name, command, log}
}

// probe runs the command of a probe until it succeeds.
func (node *node) probe(container *core.Container, probe *core.Probe, started *process) {
	node.t.Helper()
	args := []string{}
	for _, arg := range probe.Exec.Command[1:] {
		args = append(args, node.local(container, arg))
	}
	args = append(args, "--wait=60s")
	output, err := exec.Command(program(node.t), args...).CombinedOutput()
	if err != nil {
		node.t.Fatalf("%s: probe: %v\n%s\n%s", container.Name, err, output, started.log)
	}
}

// run starts the containers of a pod as the kubelet does, and returns those that keep running.
func (node *node) run(found *objects, pod *pod) []*process {
	node.t.Helper()
	running := []*process{}
	for _, container := range pod.containers() {
		started := node.start(found, pod, &container)
		probe := container.StartupProbe
		if probe == nil {
			probe = container.ReadinessProbe
		}
		if probe == nil {
			if err := started.command.Wait(); err != nil {
				node.t.Fatalf("%s: %v\n%s", container.Name, err, started.log)
			}
			continue
		}
		node.probe(&container, probe, started)
		running = append(running, started)
	}
	return running
}

// stop ends the containers of a pod, sidecars last, and expects that each drains.
func (node *node) stop(running []*process) {
	node.t.Helper()
	for i := len(running) - 1; i >= 0; i-- {
		of := running[i]
		if err := of.command.Process.Signal(syscall.SIGTERM); err != nil {
			node.t.Errorf("%s: %v\n%s", of.name, err, of.log)
		}
		if err := of.command.Wait(); err != nil {
			node.t.Errorf("%s: %v\n%s", of.name, err, of.log)
		}
	}
}
