package check

import (
	"bufio"
	"fmt"
	"io"
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
			args := []string{"serve", "--config", path, "--show-config"}
			for _, arg := range found.server(t, "cache").Spec.Containers[0].Args {
				if strings.HasPrefix(arg, "--announce=") {
					args = append(args, strings.ReplaceAll(arg, "$(POD_NAME)", "r-nuthatch-cache-0"))
				}
			}
			command := exec.Command(program(t), args...)
			if output, err := command.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s\n%s", name, err, output, text)
			}
		}
	}
}

// reply reads a simple reply, or the text of a bulk reply.
func (node *node) reply(from *bufio.Reader) string {
	node.t.Helper()
	line, err := from.ReadString('\n')
	if err != nil {
		node.t.Fatal(err)
	}
	var length int
	if _, err := fmt.Sscanf(line, "$%d", &length); err != nil || length < 0 {
		return strings.TrimSpace(line)
	}
	text := make([]byte, length+len("\r\n"))
	if _, err := io.ReadFull(from, text); err != nil {
		node.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// redis sends commands to the cache server of a node and returns the replies.
func (node *node) redis(commands ...string) []string {
	node.t.Helper()
	network, address := "tcp", node.address
	if path, isSocket := strings.CutPrefix(address, "unix:"); isSocket {
		network, address = "unix", path
	}
	connection, err := net.Dial(network, address)
	if err != nil {
		node.t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	replies := bufio.NewReader(connection)
	found := []string{}
	for _, command := range commands {
		if _, err := fmt.Fprintf(connection, "%s\r\n", command); err != nil {
			node.t.Fatal(err)
		}
		found = append(found, node.reply(replies))
	}
	return found
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
