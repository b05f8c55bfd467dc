package check

import (
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/strvals"
)

// refusals are values that the chart refuses, and a part of the message.
var refusals = []struct{ values, message string }{
	{"", "cache.auth.existingSecret: expected the name of a Secret with a password, found none; " +
		"create one with: kubectl create secret generic NAME --from-literal=password=PASSWORD; " +
		"or set cache.auth.enabled=false"},
	{"cache.auth.usersKey=users.acl", "Secret with a file of users"},
	{"cache.auth.enabled=false,networkPolicy.enabled=false",
		"all pods of the cluster could read and write"},
	{"cache.auth.existingSecret=p,cache.disk=1GiB", "the items would be lost with the pod"},
	{"cache.auth.existingSecret=p,cache.warmRestart=true", "cache.persistence.enabled"},
	{"cache.auth.existingSecret=p,cache.resources.limits.memory=1Gi",
		"cache.resources.limits.memory: expected at least 1152Mi"},
	{"cache.auth.existingSecret=p,cache.disk=10GiB,cache.persistence.enabled=true," +
		"cache.persistence.size=10Gi", "cache.persistence.size: expected at least 10880Mi"},
	{"cache.auth.existingSecret=p,cache.listen.mrcache=true", "mrcache has no login"},
	{"cache.auth.existingSecret=p,cache.settings.memory=2GiB", "one that cache.memory sets"},
	{"cache.auth.existingSecret=p,cache.settings.password_file=x", "one that cache.auth sets"},
	{"cache.auth.existingSecret=p,cache.tls.clientCA=true", "cache.tls.existingSecret"},
	{"cache.auth.existingSecret=p,cache.follow.enabled=true", "at least one snapshot"},
	{"cache.auth.existingSecret=p,metrics.serviceMonitor.enabled=true", "metrics.enabled"},
	{"cache.auth.existingSecret=p,cache.memry=1GiB", "memry"},
	{"cache.auth.existingSecret=p,cache.memory=1G", "/cache/memory"},
	{"cache.auth.existingSecret=p,cache.memory=1Gi", "/cache/memory"},
	{"cache.auth.existingSecret=p,cache.replicas=one", "/cache/replicas"},
	{"cache.auth.existingSecret=p,seccompProfile.type=Unconfined", "seccompProfile"},
	{"cache.auth.existingSecret=p,seccompProfile.type=Localhost", "localhostProfile"},
	{"cache.auth.existingSecret=p,image.digest=latest", "digest"},
	{"cache.enabled=false,store.enabled=true", "store.auth.existingSecret"},
	{"cache.enabled=false,store.enabled=true,store.auth.existingSecret=t",
		"tokens would be sent without encryption"},
	{"cache.enabled=false,chunks.enabled=true,chunks.auth.enabled=false",
		"chunks.origin: expected either"},
	{"cache.enabled=false,chunks.enabled=true,chunks.auth.enabled=false," +
		"chunks.origin=https://user:pass@host/", "put it into a Secret"},
	{"cache.enabled=false,chunks.enabled=true,chunks.auth.enabled=false," +
		"chunks.origin=https://host/,chunks.env.AWS_SECRET_ACCESS_KEY=x", "no secret among"},
	{"cache.enabled=false,chunks.enabled=true,chunks.auth.enabled=false," +
		"chunks.origin=https://host/,chunks.persistence.size=10Gi", "chunks.limit"},
	{"cache.enabled=false,follower.enabled=true", "follower.hostPath"},
	{"cache.enabled=false,follower.enabled=true,follower.hostPath=/srv/a",
		"follower.snapshots"},
	{"cache.enabled=false,follower.enabled=true,follower.hostPath=/srv/a," +
		"follower.snapshots[0].folder=u,follower.snapshots[0].source=s3://b/u," +
		"follower.snapshots[0].trustKeys[0]=shop", "the name of a key in trustKeys"},
	{"cache.enabled=false,follower.enabled=true,follower.hostPath=/srv/a," +
		"follower.snapshots[0].folder=u,follower.snapshots[0].source=s3://b/u," +
		"follower.snapshots[0].onSwap=true", "onSwap"},
	{"cache.enabled=false,populate.enabled=true", "populate.jobs"},
	{"cache.enabled=false,populate.enabled=true,populate.jobs.a.schedule=hourly," +
		"populate.jobs.a.job=x", "schedule"},
	{"cache.enabled=false,populate.enabled=true,populate.jobs.a.schedule=@hourly," +
		"populate.jobs.a.job=memory = \"2GiB\"", "set populate.jobs.a.memory"},
	{"cache.enabled=false,populate.enabled=true,populate.jobs.a.schedule=@hourly," +
		"populate.jobs.a.job=from = \"postgresql://me:secret@db/app\"",
		"an address with a password"},
	{job + "populate.jobs.a.job=from = \"mysql://db/app?user=me&password=x\"", "in the query"},
	{job + "populate.jobs.a.job=password = \"x\"", "found a password"},
	{job + "populate.jobs.a.job=from = \"postgresql://db/app\"\\, password = \"x\"",
		"found a password"},
	{job + "populate.jobs.a.job=from = \"host=db user=me password=x\"", "found a password"},
	{job + "populate.jobs.a.job=from = \"dbname = app password = 'x y' port=1\"",
		"found a password"},
	{job + "populate.jobs.a.job=from = \"connect_timeout=5 password=x host=db user=me\"",
		"found a password"},
	{job + "populate.jobs.a.job=from = 'sslrootcert=a password=x host=db'", "found a password"},
	{job + "populate.jobs.a.job=from = \"application_name=a password=x\"", "found a password"},
	{job + "populate.jobs.a.job=from = \"sslpassword=x sslkey=k host=db\"", "found a password"},
	{job + "populate.jobs.a.job=from = \"postgresql://db/app?user=me&sslpassword=x\"",
		"in the query"},
	{job + "populate.jobs.a.job=from = \"postgresql://db/app?%70assword=x\"",
		"an escaped letter"},
	{job + "populate.jobs.a.job=x,populate.jobs.a.env.DSN=connect_timeout=5 password=x host=db",
		"no secret among"},
	{job + "populate.jobs.a.job=x,populate.jobs.a.env.DSN=host=db sslkey=k sslpassword=x",
		"no secret among"},
	{"cache.auth.existingSecret=p,cache.warmRestart=true,cache.persistence.enabled=true," +
		"cache.memory=1GiB,cache.persistence.size=3Gi", "cache.persistence.size: expected at least " +
		"4096Mi, for the items on disk, or for a dump of up to four times the memory, found 3Gi; " +
		"set a larger size (enlarge volumes that exist as docs/kubernetes.md says in Upgrades), " +
		"or lower cache.memory"},
	{"cache.auth.existingSecret=p,cache.settings.otlp=http://collector:4318",
		"networkPolicy.egress: expected the collector"},
	{"cache.auth.existingSecret=p,cache.env.OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318",
		"networkPolicy.egress: expected the collector"},
	{"cache.auth.existingSecret=p,cache.settings.otlp=auto," +
		"cache.env.OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318",
		"networkPolicy.egress: expected the collector"},
	{"cache.auth.existingSecret=p,cache.settings.otlp=off," +
		"cache.env.NUTHATCH_OTLP=http://collector:4318",
		"networkPolicy.egress: expected the collector"},
	{store + "store.extraArgs[0]=--otlp=http://collector:4318",
		"networkPolicy.egress: expected the collector"},
	{store + "store.extraArgs[0]=--otlp=auto," +
		"store.env.OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318",
		"networkPolicy.egress: expected the collector"},
	{job + "populate.jobs.a.job=headers = [\"Authorization: Bearer x\"]", "Authorization"},
	{"cache.enabled=false,chunks.enabled=true,chunks.auth.enabled=false," +
		"chunks.origin=https://host/a?se=1&sig=SECRET", "chunks.originSecret"},
	{"cache.enabled=false,chunks.enabled=true,chunks.auth.enabled=false," +
		"chunks.origin=https://host/,chunks.env.HTTPS_PROXY=http://me:pw@proxy",
		"chunks.env.HTTPS_PROXY: expected no secret"},
	{follow + "cache.follow.snapshots[0].source=https://user:pw@host/a",
		"cache.follow.snapshots.source: expected an address without user and password"},
	{follow + "cache.follow.snapshots[0].source=https://host/a?X-Amz-Signature=x",
		"cache.follow.snapshots.source: expected no secret"},
	{follow + "cache.follow.snapshots[0].source=s3://b/u,cache.follow.snapshots[1].name=u," +
		"cache.follow.snapshots[1].source=s3://b/v,cache.follow.snapshots[1].file=u.nut",
		"expected one snapshot in each folder, found two in u"},
	{"cache.auth.existingSecret=p,networkPolicy.egress[0].ports[0].port=4318," +
		"cache.settings.otlp=http://me:pw@collector", "no secret among"},
	{"cache.auth.existingSecret=p,cache.listen.resp=false,cache.listen.memcache=false",
		"at least one protocol"},
	{"cache.auth.existingSecret=p,cache.memory=1MiB", "from 16MiB to 1TiB"},
	{"cache.auth.existingSecret=p,cache.memory=2TiB", "from 16MiB to 1TiB"},
	{"cache.auth.existingSecret=p,cache.resources.requests.memory=64Gi", "at most the limit"},
	{"cache.auth.existingSecret=p,fullnameOverride=1.a", "begins with a letter"},
	{"cache.auth.existingSecret=p,cache.follow=null", "follow"},
	{nodes + "cache.listen.pmc=true",
		"cache.listen.pmc: expected false with cache.cluster.enabled, found true: nodes serve " +
			"clients of Redis and memcached only"},
	{nodes + "cache.listen.resp=false", "cache.listen.resp: expected true with cache.cluster.enabled"},
	{nodes + "cache.cluster.etcd.endpoints=null",
		"cache.cluster.etcd.endpoints: expected at least one HOST:PORT of etcd, found none"},
	{nodes + "cache.cluster.etcd.endpoints[0]=etcd", "/cache/cluster/etcd/endpoints/0"},
	{nodes + "cache.cluster.etcd.endpoints[0]=http://etcd:2379", "/cache/cluster/etcd/endpoints/0"},
	{nodes + "cache.cluster.etcd.endpoints[0]=me:pw@etcd:2379", "/cache/cluster/etcd/endpoints/0"},
	{nodes + "cache.disk=1GiB", "cache.persistence.enabled: expected true with cache.disk"},
	{nodes + "cache.persistence.enabled=true",
		"cache.persistence.enabled: expected false with cache.cluster.enabled and without cache.disk"},
	{nodes + "cache.auth.usersKey=users.acl",
		"cache.cluster.nodeUser: expected a user of users.acl as which nodes log in"},
	{nodes + "cache.cluster.nodeUser=node",
		"cache.cluster.nodeUser: expected none without cache.auth.usersKey, found node"},
	{nodes + "cache.settings.node_ca=a", "one that cache.cluster sets"},
	{nodes + "cache.env.POD_NAME=a", "cache.env.POD_NAME: expected none"},
	{nodes + "cache.settings.announce=a:1", "one that cache.cluster sets"},
	{nodes + "cache.settings.cluster_drain_ms=5", "one that cache.cluster.drainMs sets"},
	{nodes + "cache.settings.etcd-user=a", "one that cache.cluster.etcd sets"},
	{nodes + "cache.cluster.moveRate=1KiB", "cache.cluster.moveRate: expected at least 1MiB"},
	{nodes + "cache.cluster.name=a/b", "/cache/cluster/name"},
	{nodes + "cache.cluster.drainMs=5s", "/cache/cluster/drainMs"},
	{nodes + "cache.cluster.etcd.tls.existingSecret=t",
		"cache.cluster.etcd.tls.enabled: expected true with tls.existingSecret, which is t"},
	{nodes + "cache.cluster.etcd.tls.enabled=true,cache.cluster.etcd.tls.clientCertificate=true",
		"cache.cluster.etcd.tls.existingSecret: expected a Secret with tls.crt"},
	{nodes + "cache.cluster.etcd.auth.user=me", "expected a Secret with the password of me"},
	{nodes + "cache.cluster.etcd.auth.existingSecret=s",
		"cache.cluster.etcd.auth.user: expected the user of etcd whose password is in s"},
	{nodes + "cache.cluster.etcd.auth.user=me,cache.cluster.etcd.auth.existingSecret=s",
		"the password would be sent without encryption"},
}

const (
	job = "cache.enabled=false,populate.enabled=true,populate.jobs.a.schedule=@hourly,"

	store = "cache.enabled=false,store.enabled=true,store.auth.enabled=false,"

	nodes = "cache.auth.existingSecret=p,cache.cluster.enabled=true," +
		"cache.cluster.etcd.endpoints[0]=etcd:2379,"

	follow = "cache.auth.existingSecret=p,cache.follow.enabled=true," +
		"cache.follow.snapshots[0].name=u,cache.follow.snapshots[0].file=u.nut,"
)

func TestInvalidValuesAreRefused(t *testing.T) {
	for _, refusal := range refusals {
		values, err := strvals.Parse(refusal.values)
		if err != nil {
			t.Fatalf("%s: %v", refusal.values, err)
		}
		_, err = render(loadChart(t), chartutil.Values(values))
		if err == nil || !strings.Contains(err.Error(), refusal.message) {
			t.Errorf("%s: expected %q, found %v", refusal.values, refusal.message, err)
		}
	}
}

// accepted are values that were refused, or are beside a refused one.
var accepted = []string{
	"cache.auth.existingSecret=p,cache.persistence.enabled=true,cache.persistence.size=1Gi",
	"cache.auth.existingSecret=p,cache.settings.otlp=off," +
		"cache.env.OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318",
	store + "store.extraArgs[0]=--otlp=off," +
		"store.env.OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318",
	"cache.auth.existingSecret=p,cache.settings.otlp=http://collector:4318," +
		"networkPolicy.enabled=false",
	nodes + "cache.listen.memcache=true,cache.settings.cluster-forward=true",
	job + "populate.jobs.a.job=sql = \"select id from t where user = 1 and password = ''\"",
	job + "populate.jobs.a.job=from = \"postgresql://db/app?options=-c%20work_mem\"",
	store + "store.extraArgs[0]=--otlp=http://collector:4318," +
		"networkPolicy.egress[0].ports[0].port=4318",
}

func TestValidValuesAreAccepted(t *testing.T) {
	for _, text := range accepted {
		if _, err := render(loadChart(t), given(t, text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
