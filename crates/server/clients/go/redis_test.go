package clients

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestValues(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, r *redis.Client) {
		is(t, result(r.Set(ctx, "key", "value", time.Hour).Result())(t), "OK")
		is(t, result(r.Get(ctx, "key").Result())(t), "value")
		is(t, r.Get(ctx, "nobody").Err(), redis.Nil)
		is(t, result(r.SetNX(ctx, "key", "other", 0).Result())(t), false)
		is(t, result(r.SetXX(ctx, "key", "other", redis.KeepTTL).Result())(t), true)
		is(t, result(r.TTL(ctx, "key").Result())(t) > 0, true)
		arguments := redis.SetArgs{Mode: "XX", Get: true, TTL: time.Minute}
		is(t, result(r.SetArgs(ctx, "key", "third", arguments).Result())(t), "other")
		is(t, result(r.Append(ctx, "key", "!").Result())(t), int64(6))
		is(t, result(r.GetRange(ctx, "key", -3, -1).Result())(t), "rd!")
		is(t, result(r.GetEx(ctx, "key", time.Hour).Result())(t), "third!")
		is(t, result(r.GetDel(ctx, "key").Result())(t), "third!")
		is(t, result(r.Exists(ctx, "key").Result())(t), int64(0))
	})
}

func TestKeysAndValuesAreBytes(t *testing.T) {
	long := strings.Repeat("\x00\r\n\xff", 15_000)
	each(t, func(t *testing.T, ctx context.Context, r *redis.Client) {
		for _, key := range []string{"", "\x00\r\n\xff", strings.Repeat("k", 65_000)} {
			must(t, r.Set(ctx, key, long, 0).Err())
			is(t, result(r.Get(ctx, key).Result())(t) == long, true)
			is(t, result(r.Del(ctx, key).Result())(t), int64(1))
		}
	})
}

func TestManyKeysAtOnce(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, r *redis.Client) {
		var pairs, keys, values []any
		for n := range 2000 {
			key, value := fmt.Sprintf("key:%04d", n), fmt.Sprintf("value %d", n)
			pairs, keys, values = append(pairs, key, value), append(keys, key), append(values, value)
		}
		must(t, r.MSet(ctx, pairs...).Err())
		names := make([]string, len(keys))
		for at, key := range keys {
			names[at] = key.(string)
		}
		found := result(r.MGet(ctx, append(names, "nobody")...).Result())(t)
		is(t, found, append(values, nil))
		var scanned []string
		for scan := r.Scan(ctx, 0, "key:*", 100).Iterator(); scan.Next(ctx); {
			scanned = append(scanned, scan.Val())
		}
		slices.Sort(scanned)
		is(t, scanned, names)
		is(t, result(r.Unlink(ctx, names...).Result())(t), int64(2000))
		is(t, result(r.DBSize(ctx).Result())(t), int64(0))
	})
}

func TestNumbersAndBits(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, r *redis.Client) {
		is(t, result(r.IncrBy(ctx, "n", 41).Result())(t), int64(41))
		is(t, result(r.Incr(ctx, "n").Result())(t), int64(42))
		is(t, result(r.Decr(ctx, "n").Result())(t), int64(41))
		is(t, result(r.IncrByFloat(ctx, "n", 0.5).Result())(t), 41.5)
		is(t, result(r.Get(ctx, "n").Float64())(t), 41.5)
		is(t, result(r.SetBit(ctx, "bits", 9, 1).Result())(t), int64(0))
		is(t, result(r.GetBit(ctx, "bits", 9).Result())(t), int64(1))
		is(t, result(r.BitCount(ctx, "bits", nil).Result())(t), int64(1))
		is(t, result(r.BitPos(ctx, "bits", 1).Result())(t), int64(9))
		is(t, result(r.BitOpNot(ctx, "not", "bits").Result())(t), int64(2))
		found := result(r.BitField(ctx, "bits", "SET", "u8", 0, 7, "GET", "u8", 0).Result())(t)
		is(t, found, []int64{0, 7})
	})
}

func TestExpiry(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, r *redis.Client) {
		must(t, r.Set(ctx, "key", "value", 0).Err())
		is(t, result(r.TTL(ctx, "key").Result())(t), time.Duration(-1))
		is(t, result(r.TTL(ctx, "nobody").Result())(t), time.Duration(-2))
		is(t, result(r.PExpire(ctx, "key", time.Minute).Result())(t), true)
		is(t, result(r.ExpireGT(ctx, "key", time.Second).Result())(t), false)
		is(t, result(r.ExpireNX(ctx, "key", time.Hour).Result())(t), false)
		then := time.Unix(4_102_444_800, 0)
		is(t, result(r.ExpireAt(ctx, "key", then).Result())(t), true)
		seconds := result(r.ExpireTime(ctx, "key").Result())(t)
		is(t, seconds, time.Duration(then.Unix())*time.Second)
		is(t, result(r.Persist(ctx, "key").Result())(t), true)
		is(t, result(r.Copy(ctx, "key", "copy", 0, false).Result())(t), int64(1))
		is(t, result(r.Rename(ctx, "copy", "moved").Result())(t), "OK")
		is(t, result(r.Type(ctx, "moved").Result())(t), "string")
		is(t, result(r.ExpireAt(ctx, "moved", time.Unix(1, 0)).Result())(t), true)
		is(t, result(r.Exists(ctx, "moved").Result())(t), int64(0))
	})
}

func TestPipelinesAndTransactions(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, r *redis.Client) {
		answers := result(r.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for n := range 1000 {
				pipe.IncrBy(ctx, "n", int64(n))
			}
			return nil
		}))(t)
		is(t, answers[999].(*redis.IntCmd).Val(), int64(999*1000/2))
		answers = result(r.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "a", 1, time.Hour)
			pipe.Incr(ctx, "a")
			pipe.MGet(ctx, "a", "nobody")
			return nil
		}))(t)
		is(t, answers[2].(*redis.SliceCmd).Val(), []any{"2", nil})

		_, err := r.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			pipe.Set(ctx, "a", "text", 0)
			pipe.Incr(ctx, "a")
			pipe.Set(ctx, "b", 1, 0)
			return nil
		})
		is(t, strings.Contains(err.Error(), "not an integer"), true)
		is(t, result(r.MGet(ctx, "a", "b").Result())(t), []any{"text", "1"})
	})
}

func TestWatchedKeys(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, r *redis.Client) {
		conflict := func(tx *redis.Tx) error {
			must(t, r.Set(ctx, "n", "theirs", 0).Err())
			_, err := tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				return pipe.Set(ctx, "n", "mine", 0).Err()
			})
			return err
		}
		is(t, errors.Is(r.Watch(ctx, conflict, "n"), redis.TxFailedErr), true)
		is(t, result(r.Get(ctx, "n").Result())(t), "theirs")
	})
}

// Several connections count together; each conflict is tried again, and none loses a count.
func TestCountingTogether(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, r *redis.Client) {
		add := func(tx *redis.Tx) error {
			n, err := tx.Get(ctx, "n").Int()
			if err != nil && !errors.Is(err, redis.Nil) {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
				return pipe.Set(ctx, "n", n+1, 0).Err()
			})
			return err
		}
		var threads sync.WaitGroup
		for range 8 {
			threads.Go(func() {
				for done := 0; done < 20; {
					switch err := r.Watch(ctx, add, "n"); {
					case err == nil:
						done++
					case !errors.Is(err, redis.TxFailedErr):
						t.Errorf("expected no error or a conflict, found %v", err)
						return
					}
				}
			})
		}
		threads.Wait()
		is(t, result(r.Get(ctx, "n").Int())(t), 160)
	})
}

func TestWhatClientsAskOfAServer(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, r *redis.Client) {
		is(t, result(r.Ping(ctx).Result())(t), "PONG")
		is(t, result(r.Echo(ctx, "hello").Result())(t), "hello")
		found := result(r.ConfigGet(ctx, "maxmemory").Result())(t)
		is(t, found, map[string]string{"maxmemory": "268435456"})
		is(t, result(r.ConfigSet(ctx, "slowlog-max-len", "128").Result())(t), "OK")
		info := result(r.InfoMap(ctx, "server").Result())(t)
		is(t, info["Server"]["redis_mode"], "standalone")
		commands := result(r.Command(ctx).Result())(t)
		is(t, commands["mset"].StepCount, int8(2))
		names := result(r.CommandList(ctx, nil).Result())(t)
		is(t, slices.Contains(names, "client|setinfo"), true)
		is(t, result(r.Time(ctx).Result())(t).Year() > 2020, true)
		is(t, r.MemoryUsage(ctx, "nobody").Err(), redis.Nil)
	})
}

func TestNamesOfClients(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, r *redis.Client) {
		one := r.Conn()
		defer func() { _ = one.Close() }()
		must(t, one.ClientSetName(ctx, "somebody").Err())
		is(t, result(one.ClientGetName(ctx).Result())(t), "somebody")
		info := result(one.ClientInfo(ctx).Result())(t)
		is(t, info.Name, "somebody")
		is(t, strings.HasPrefix(info.LibName, "go-redis"), true)
		is(t, info.ID, result(one.ClientID(ctx).Result())(t))
		is(t, result(r.ClientKillByFilter(ctx, "ID", fmt.Sprint(info.ID)).Result())(t), int64(1))
	})
}

func TestErrors(t *testing.T) {
	each(t, func(t *testing.T, ctx context.Context, r *redis.Client) {
		err := r.LPush(ctx, "list", "1").Err()
		is(t, redis.HasErrorPrefix(err, "unknown command"), true)
		err = r.Do(ctx, "get").Err()
		is(t, redis.HasErrorPrefix(err, "wrong number of arguments"), true)
		err = r.Do(ctx, "auth", "somebody", "wrong").Err()
		is(t, redis.HasErrorPrefix(err, "WRONGPASS"), true)
		must(t, r.Ping(ctx).Err())
	})
}
