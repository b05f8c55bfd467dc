// Command cluster runs the workload of ../../README.md with go-redis's ClusterClient.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"
)

// keys is the number of keys of each kind.
const keys = 40

// A thread executes operations with a client.
type thread struct {
	name  string
	redis *redis.ClusterClient
	log   *os.File
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run executes operations until the end of the standard input.
func run(arguments []string) error {
	if len(arguments) != 5 {
		return errors.New("expected NAME ADDRESSES FILE THREADS PAUSE_MS")
	}
	threads, err := strconv.Atoi(arguments[3])
	if err != nil {
		return err
	}
	pause, err := time.ParseDuration(arguments[4] + "ms")
	if err != nil {
		return err
	}
	log, err := os.OpenFile(arguments[2], os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs:       strings.Split(arguments[1], ","),
		DialTimeout: time.Second,
		ReadTimeout: time.Second,
	})
	defer func() { _ = client.Close() }()
	stopped := make(chan struct{})
	var group sync.WaitGroup
	for number := range threads {
		one := thread{fmt.Sprintf("%s.%d", arguments[0], number), client, log}
		group.Go(func() { one.run(pause, stopped) })
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	close(stopped)
	group.Wait()
	return err
}

// run executes operations until the channel is closed.
func (t thread) run(pause time.Duration, stopped <-chan struct{}) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for number := 1; ; number++ {
		select {
		case <-stopped:
			return
		case <-ticker.C:
			t.step(rand.IntN(keys), fmt.Sprintf("%s.%d", t.name, number))
		}
	}
}

// step executes an operation with keys of this number, or writes this value.
func (t thread) step(number int, value string) {
	ctx := context.Background()
	key, sum := fmt.Sprintf("key%d", number), fmt.Sprintf("sum%d", number)
	pair := []string{fmt.Sprintf("{pair%d}a", number), fmt.Sprintf("{pair%d}b", number)}
	switch rand.IntN(8) {
	case 0, 1:
		t.execute("get", []string{key}, "-", func() ([]any, error) {
			found, err := t.redis.Get(ctx, key).Result()
			if errors.Is(err, redis.Nil) {
				return []any{nil}, nil
			}
			return []any{found}, err
		})
	case 2, 3:
		t.execute("set", []string{key}, value, func() ([]any, error) {
			return []any{"-"}, t.redis.Set(ctx, key, value, 0).Err()
		})
	case 4, 5:
		t.execute("get", pair, "-", func() ([]any, error) {
			return t.redis.MGet(ctx, pair...).Result()
		})
	case 6:
		t.execute("set", pair, value, func() ([]any, error) {
			return []any{"-", "-"}, t.redis.MSet(ctx, pair[0], value, pair[1], value).Err()
		})
	case 7:
		amount := rand.Int64N(1<<40-1) + 1
		t.execute("incrby", []string{sum}, strconv.FormatInt(amount, 10), func() ([]any, error) {
			found, err := t.redis.IncrBy(ctx, sum, amount).Result()
			return []any{found}, err
		})
	}
}

// A call returns a result for each key; nil is a miss.
type call func() ([]any, error)

// execute calls a function, and writes a line with its result for each key.
func (t thread) execute(operation string, keys []string, argument string, call call) {
	start := monotonic()
	results, err := call()
	end := monotonic()
	var lines strings.Builder
	for at, key := range keys {
		outcome, result := "miss", "-"
		if err != nil {
			text := fmt.Sprintf("%T: %s", err, err)
			outcome, result = "error", strings.Join(strings.Fields(text), " ")
		} else if results[at] != nil {
			outcome, result = "ok", fmt.Sprint(results[at])
		}
		fmt.Fprintf(&lines, "%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n",
			start, end, t.name, operation, key, argument, outcome, result)
	}
	if _, err := t.log.WriteString(lines.String()); err != nil {
		panic(err)
	}
}

// monotonic returns CLOCK_MONOTONIC in nanoseconds.
func monotonic() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err)
	}
	return now.Nano()
}
