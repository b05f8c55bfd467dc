// Package clients holds suites for clients written in Go: go-redis and gomemcache.
package clients

import (
	"context"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// address is where the server listens, as scripts/clients hands it on.
func address(t *testing.T, name string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		t.Fatalf("expected an address in %s: run scripts/clients go", name)
	}
	return value
}

// each runs a test with a client for each protocol and kind of socket, and an empty server.
func each(t *testing.T, test func(t *testing.T, ctx context.Context, r *redis.Client)) {
	tcp, socket := address(t, "NUTHATCH_RESP"), address(t, "NUTHATCH_RESP_SOCKET")
	for name, options := range map[string]*redis.Options{
		"as_it_comes": {Addr: tcp},
		"resp2":       {Addr: tcp, Protocol: 2},
		"resp3":       {Addr: tcp, Protocol: 3},
		"unix_socket": {Network: "unix", Addr: socket},
	} {
		t.Run(name, func(t *testing.T) {
			options.DialTimeout, options.ReadTimeout = time.Minute, time.Minute
			r := redis.NewClient(options)
			defer func() { _ = r.Close() }()
			ctx := t.Context()
			must(t, r.FlushAll(ctx).Err())
			test(t, ctx, r)
		})
	}
}

// must fails the test over an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// result is what a command answers, as in is(t, result(r.Get(ctx, "key").Result())(t), "value").
func result[T any](value T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		must(t, err)
		return value
	}
}

// is fails the test unless what was found is what was expected.
func is(t *testing.T, found, expected any) {
	t.Helper()
	if !reflect.DeepEqual(found, expected) {
		t.Fatalf("expected %#v, found %#v", expected, found)
	}
}
