package clients

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

// eachMemcache runs a test with a client for each kind of socket, and an empty server.
func eachMemcache(t *testing.T, test func(t *testing.T, m *memcache.Client)) {
	for _, name := range []string{"NUTHATCH_MEMCACHE", "NUTHATCH_MEMCACHE_SOCKET"} {
		t.Run(name, func(t *testing.T) {
			m := memcache.New(address(t, name))
			m.Timeout = time.Minute
			defer func() { _ = m.Close() }()
			must(t, m.Ping())
			must(t, m.FlushAll())
			test(t, m)
		})
	}
}

func TestItems(t *testing.T) {
	long := []byte(strings.Repeat("\x00\r\n\xff", 15_000))
	eachMemcache(t, func(t *testing.T, m *memcache.Client) {
		must(t, m.Set(&memcache.Item{Key: "key", Value: long, Flags: 7, Expiration: 1000}))
		item := result(m.Get("key"))(t)
		is(t, item.Value, long)
		is(t, item.Flags, uint32(7))
		_, err := m.Get("nobody")
		is(t, err, memcache.ErrCacheMiss)
		is(t, m.Add(&memcache.Item{Key: "key"}), memcache.ErrNotStored)
		must(t, m.Add(&memcache.Item{Key: "new", Value: []byte("b")}))
		must(t, m.Append(&memcache.Item{Key: "new", Value: []byte("c")}))
		must(t, m.Prepend(&memcache.Item{Key: "new", Value: []byte("a")}))
		is(t, string(result(m.Get("new"))(t).Value), "abc")
		must(t, m.Replace(&memcache.Item{Key: "new", Value: []byte("d")}))
		is(t, m.Replace(&memcache.Item{Key: "nobody"}), memcache.ErrNotStored)
		must(t, m.Delete("new"))
		is(t, m.Delete("new"), memcache.ErrCacheMiss)
	})
}

func TestManyItemsAtOnce(t *testing.T) {
	eachMemcache(t, func(t *testing.T, m *memcache.Client) {
		keys := []string{"nobody"}
		for n := range 500 {
			key := fmt.Sprintf("key:%d", n)
			must(t, m.Set(&memcache.Item{Key: key, Value: []byte(key)}))
			keys = append(keys, key)
		}
		found := result(m.GetMulti(keys))(t)
		is(t, len(found), 500)
		for key, item := range found {
			is(t, string(item.Value), key)
		}
	})
}

func TestCompareAndSwap(t *testing.T) {
	eachMemcache(t, func(t *testing.T, m *memcache.Client) {
		must(t, m.Set(&memcache.Item{Key: "key", Value: []byte("1")}))
		mine, theirs := result(m.Get("key"))(t), result(m.Get("key"))(t)
		mine.Value, theirs.Value = []byte("mine"), []byte("theirs")
		must(t, m.CompareAndSwap(theirs))
		is(t, m.CompareAndSwap(mine), memcache.ErrCASConflict)
		is(t, string(result(m.Get("key"))(t).Value), "theirs")
		must(t, m.Delete("key"))
		is(t, m.CompareAndSwap(mine), memcache.ErrCacheMiss)
	})
}

func TestNumbersAndTimes(t *testing.T) {
	eachMemcache(t, func(t *testing.T, m *memcache.Client) {
		must(t, m.Set(&memcache.Item{Key: "n", Value: []byte("40")}))
		is(t, result(m.Increment("n", 2))(t), uint64(42))
		is(t, result(m.Decrement("n", 50))(t), uint64(0))
		_, err := m.Increment("nobody", 1)
		is(t, err, memcache.ErrCacheMiss)
		must(t, m.Touch("n", 1000))
		is(t, m.Touch("nobody", 1000), memcache.ErrCacheMiss)
		is(t, string(result(m.GetAndTouch("n", 1000))(t).Value), "0")
		_, err = m.GetAndTouch("nobody", 1000)
		is(t, err, memcache.ErrCacheMiss)
		must(t, m.Touch("n", -1))
		_, err = m.Get("n")
		is(t, err, memcache.ErrCacheMiss)
	})
}
