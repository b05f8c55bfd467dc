package check

import (
	"bufio"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestPodsRun(t *testing.T) {
	for name, values := range valueFiles(t) {
		t.Run(name, func(t *testing.T) {
			found := objectsOf(t, values)
			for _, pod := range found.pods {
				node := newNode(t)
				node.stop(node.run(found, &pod))
			}
		})
	}
}

// --show-config checks the settings as they are, with the addresses that other pods reach.
func TestSettingsAreAccepted(t *testing.T) {
	for name, values := range valueFiles(t) {
		found := objectsOf(t, values)
		for _, config := range found.configs {
			text, ok := config.Data["nuthatch.toml"]
			if !ok {
				continue
			}
			path := filepath.Join(t.TempDir(), "nuthatch.toml")
			writeFile(t, path, []byte(text))
			command := exec.Command(program(t), "serve", "--config", path, "--show-config")
			if output, err := command.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s\n%s", name, err, output, text)
			}
		}
	}
}

// redis sends commands to the cache server of a node and returns the lines of the replies.
func (node *node) redis(commands ...string) []string {
	node.t.Helper()
	connection, err := net.Dial("unix", filepath.Join(node.folder, "resp"))
	if err != nil {
		node.t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	replies := bufio.NewReader(connection)
	lines := []string{}
	for _, command := range commands {
		if _, err := fmt.Fprintf(connection, "%s\r\n", command); err != nil {
			node.t.Fatal(err)
		}
		line, err := replies.ReadString('\n')
		if err != nil {
			node.t.Fatal(err)
		}
		if strings.HasPrefix(line, "$") && line != "$-1\r\n" {
			if line, err = replies.ReadString('\n'); err != nil {
				node.t.Fatal(err)
			}
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

func TestSidecarKeepsSnapshotsForClients(t *testing.T) {
	found := objectsOf(t, valueFiles(t)["follow-sidecar"])
	node := newNode(t)
	running := node.run(found, &found.pods[0])
	replies := node.redis("GET u:user:1.name", "AUTH sesame", "GET u:user:1.name")
	if !strings.HasPrefix(replies[0], "-NOAUTH") || replies[2] != "Ada" {
		t.Errorf("replies %q", replies)
	}
	node.stop(running)
}

func TestItemsSurviveAnUpgrade(t *testing.T) {
	found := objectsOf(t, valueFiles(t)["everything"])
	for i := range found.pods {
		pod := &found.pods[i]
		if pod.component() != "cache" {
			continue
		}
		node := newNode(t)
		running := node.run(found, pod)
		node.redis("SET greeting hello")
		node.stop(running)
		running = node.run(found, pod)
		// Items are restored while the server serves: the time limit of the test ends this.
		for node.redis("GET greeting")[0] != "hello" {
			continue
		}
		node.stop(running)
		return
	}
	t.Fatal("no cache")
}

func TestJobPublishes(t *testing.T) {
	found := objectsOf(t, valueFiles(t)["populate"])
	node := newNode(t)
	node.run(found, &found.pods[0])
	destination := filepath.Join(node.folder, "published/from-database")
	output := node.keys.nuthatch("generations", destination)
	if !strings.Contains(output, "users.nut") {
		t.Errorf("generations: %s", output)
	}
}
