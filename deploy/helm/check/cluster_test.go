package check

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
)

// server returns the pods of a component.
func (found *objects) server(t *testing.T, component string) *pod {
	t.Helper()
	for i := range found.pods {
		if found.pods[i].component() == component {
			return &found.pods[i]
		}
	}
	t.Fatalf("no pods of %s", component)
	return nil
}

// freeAddress returns an address of loopback at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// startEtcd starts a server of etcd, and returns its address.
func startEtcd(t *testing.T) string {
	t.Helper()
	client, peer := freeAddress(t), "http://"+freeAddress(t)
	command := exec.Command("etcd", "--name=e0", "--data-dir="+filepath.Join(t.TempDir(), "etcd"),
		"--unsafe-no-fsync", "--listen-client-urls=http://"+client,
		"--advertise-client-urls=http://"+client, "--listen-peer-urls="+peer,
		"--initial-advertise-peer-urls="+peer, "--initial-cluster=e0="+peer)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return client
}

// clusterNode starts pod number N of a cluster.
func clusterNode(t *testing.T, found *objects, etcd string, number int) (*node, []*process) {
	t.Helper()
	pod := found.server(t, "cache")
	node := newNode(t)
	node.etcd, node.address = etcd, freeAddress(t)
	node.podName = fmt.Sprintf("%s-%d", pod.name, number)
	return node, node.run(found, pod)
}

// slots returns how many slots a node serves, and how many have an owner.
func (node *node) slots() (served, assigned int) {
	node.t.Helper()
	for _, line := range strings.Fields(node.redis("AUTH sesame", "CLUSTER INFO")[1]) {
		_, _ = fmt.Sscanf(line, "cluster_slots_served:%d", &served)
		_, _ = fmt.Sscanf(line, "cluster_slots_assigned:%d", &assigned)
	}
	return served, assigned
}

// awaitParts waits until nodes serve all slots in equal parts. The time limit of the test ends it.
func awaitParts(nodes []*node) {
	for sum, isEqual := 0, false; sum != 16384 || !isEqual; {
		sum, isEqual = 0, true
		for _, node := range nodes {
			served, assigned := node.slots()
			part := 16384 / len(nodes)
			isEqual = isEqual && assigned == 16384 && served >= part && served <= part+1
			sum += served
		}
	}
}

// countItems returns how many items nodes have.
func countItems(t *testing.T, nodes []*node) int {
	t.Helper()
	sum := 0
	for _, node := range nodes {
		var items int
		if _, err := fmt.Sscanf(node.redis("AUTH sesame", "DBSIZE")[1], ":%d", &items); err != nil {
			t.Fatal(err)
		}
		sum += items
	}
	return sum
}

func TestPodsFormAClusterAndScaleDown(t *testing.T) {
	found := objectsOf(t, valueFiles(t)["cluster"])
	etcd := startEtcd(t)
	nodes, running := []*node{}, [][]*process{}
	for number := range 3 {
		node, started := clusterNode(t, found, etcd, number)
		nodes, running = append(nodes, node), append(running, started)
	}
	awaitParts(nodes)
	// Each node stores the keys of its slots, and redirects the others.
	commands := []string{"AUTH sesame"}
	for key := range 300 {
		commands = append(commands, fmt.Sprintf("SET key%d value", key))
	}
	for _, node := range nodes {
		node.redis(commands...)
	}
	if items := countItems(t, nodes); items != 300 {
		t.Fatalf("expected 300 items, found %d", items)
	}
	nodes[2].stop(running[2])
	awaitParts(nodes[:2])
	if items := countItems(t, nodes[:2]); items != 300 {
		t.Errorf("expected 300 items after scaling down, found %d", items)
	}
	for i := range 2 {
		nodes[i].stop(running[i])
	}
}

func TestNodesAnnounceTheirNames(t *testing.T) {
	for _, name := range []string{"cluster", "cluster-tls"} {
		found := objectsOf(t, valueFiles(t)[name])
		pod := found.server(t, "cache")
		announced := "--announce=$(POD_NAME)." + pod.governing + "." + namespace + ".svc:6379"
		if args := pod.Spec.Containers[0].Args; args[len(args)-1] != announced {
			t.Errorf("%s: expected %s, found %v", name, announced, args)
		}
		for _, service := range found.services {
			if service.Name == pod.governing && !service.Spec.PublishNotReadyAddresses {
				t.Errorf("%s: %s: a node that drains has no name", name, service.Name)
			}
		}
	}
}

func TestNodesReachEachOtherAndEtcd(t *testing.T) {
	for name, peers := range map[string]int{"cluster": 0, "cluster-tls": 1} {
		found := objectsOf(t, valueFiles(t)[name])
		pod, policy := found.server(t, "cache"), found.policies[0].Spec
		from, to := policy.Ingress[0], policy.Egress[0]
		if !isSubset(from.From[0].PodSelector.MatchLabels, pod.Labels) ||
			!isSubset(to.To[0].PodSelector.MatchLabels, pod.Labels) ||
			from.Ports[0].Port.IntValue() != 6379 || to.Ports[0].Port.IntValue() != 6379 {
			t.Errorf("%s: nodes do not reach each other: %v, %v", name, from, to)
		}
		etcd, dns := policy.Egress[1], policy.Egress[2]
		if len(etcd.To) != peers || len(etcd.Ports) != 1 || etcd.Ports[0].Port.IntValue() != 2379 {
			t.Errorf("%s: etcd: %v", name, etcd)
		}
		if len(dns.Ports) != 2 || dns.Ports[0].Port.IntValue() != 53 {
			t.Errorf("%s: DNS: %v", name, dns)
		}
	}
}

// By default a node has the time to move all of its memory.
func TestNodesHaveTimeToMoveTheirItems(t *testing.T) {
	for _, size := range []struct {
		values                string
		gracePeriod, minReady int64
	}{
		// preStop 5 s, drain-ms 10 s, and 15 s; and 10 s beside the move, or 20 s in all.
		{"cache.replicas=3,cache.memory=1GiB", 30 + 11 + 10, 16},
		{"cache.replicas=3,cache.memory=10GiB", 30 + 103 + 10, 62},
		// The examples of docs/cluster.md.
		{"cache.replicas=3,cache.memory=2GiB", 30 + 31, 21},
		{"cache.replicas=5,cache.memory=16GiB", 204, 51},
		{"cache.replicas=3,cache.memory=10GiB,cache.cluster.moveRate=1GiB", 50, 15},
		{"cache.replicas=1,cache.memory=10GiB,cache.cluster.drainMs=0", 30, 113},
	} {
		pod := objectsOf(t, given(t, nodes+size.values)).server(t, "cache")
		if found := *pod.Spec.TerminationGracePeriodSeconds; found != size.gracePeriod {
			t.Errorf("%s: grace period: expected %d, found %d", size.values, size.gracePeriod, found)
		}
		if int64(pod.minReady) != size.minReady {
			t.Errorf("%s: expected %d, found %d", size.values, size.minReady, pod.minReady)
		}
	}
}

// Items that outlive the pod are on a volume of their own, with the identifier of the node.
func TestNodesKeepTheirItems(t *testing.T) {
	for _, kept := range []string{"cache.disk=1GiB", "cache.warmRestart=true"} {
		values := nodes + "cache.persistence.enabled=true," + kept
		pod := objectsOf(t, given(t, values)).server(t, "cache")
		if len(pod.claims) != 1 {
			t.Errorf("%s: claims %v", kept, pod.claims)
		}
		for _, volume := range pod.Spec.Volumes {
			if volume.EmptyDir != nil && volume.Name == "data" {
				t.Errorf("%s: the items end with the pod", kept)
			}
		}
	}
}

// The identifier of a node is on a volume that ends with the pod: no copy of it is ever started.
func TestIdentifiersEndWithThePod(t *testing.T) {
	for _, name := range []string{"cluster", "cluster-tls"} {
		found := objectsOf(t, valueFiles(t)[name])
		pod := found.server(t, "cache")
		if len(pod.claims) != 0 {
			t.Errorf("%s: claims %v", name, pod.claims)
		}
		isEphemeral := slices.ContainsFunc(pod.Spec.Volumes, func(volume core.Volume) bool {
			return volume.Name == "data" && volume.EmptyDir != nil
		})
		text := found.configs[pod.name].Data["nuthatch.toml"]
		if !isEphemeral || !strings.Contains(text, "data-dir = \"/var/lib/nuthatch/data\"") {
			t.Errorf("%s: expected the folder of the node in an emptyDir:\n%s", name, text)
		}
	}
}
