package snapshot

import (
	"math/bits"
	"unsafe"

	"github.com/zeebo/xxh3"
)

// Numbers of XXH3-64, as its specification defines them: words of the default secret, and the
// multipliers of the final mixing.
const (
	secret8  = 0x1cad21f72c81017c
	secret16 = 0xdb979083e96dd4de
	secret24 = 0x1f67b3b7a4a44072
	secret32 = 0x78e5c0cc4ee679cb
	secret40 = 0x2172ffcc7dd05a82
	secret48 = 0x8e2443f7744608b8

	mixShort  = 0x9fb21c651e98df25
	mixMiddle = 0x165667919e3779f9
)

// keyHasher computes XXH3-64 of keys with one seed. It has what the function derives from the seed
// for keys of 4 to 16 bytes, because most keys are short.
type keyHasher struct {
	flipShort uint64
	flipLow   uint64
	flipHigh  uint64
	seed      uint64
}

func newKeyHasher(seed uint64) keyHasher {
	swapped := seed ^ uint64(bits.ReverseBytes32(uint32(seed)))<<32
	return keyHasher{
		flipShort: (secret8 ^ secret16) - swapped,
		flipLow:   (secret24 ^ secret32) + seed,
		flipHigh:  (secret40 ^ secret48) - seed,
		seed:      seed,
	}
}

// hash returns the hash of a key.
func (h *keyHasher) hash(key string) uint64 {
	p, n := unsafe.Pointer(unsafe.StringData(key)), uintptr(len(key))
	if n-9 < 8 {
		return h.hashMiddle(load64(p, 0), load64(p, n-8), uint64(n))
	}
	return h.hashOther(key)
}

// hashMiddle returns the hash of a key of 9 to 16 bytes, from its first and its last eight bytes.
func (h *keyHasher) hashMiddle(first, last, n uint64) uint64 {
	low, high := first^h.flipLow, last^h.flipHigh
	productHigh, productLow := bits.Mul64(low, high)
	mixed := n + bits.ReverseBytes64(low) + high + (productHigh ^ productLow)
	mixed ^= mixed >> 37
	mixed *= mixMiddle
	return mixed ^ mixed>>32
}

// hashOther returns the hash of a key of any other length.
//
//go:noinline
func (h *keyHasher) hashOther(key string) uint64 {
	n := uintptr(len(key))
	if n-4 < 5 {
		p := unsafe.Pointer(unsafe.StringData(key))
		mixed := (uint64(load32(p, n-4)) + uint64(load32(p, 0))<<32) ^ h.flipShort
		mixed ^= bits.RotateLeft64(mixed, 49) ^ bits.RotateLeft64(mixed, 24)
		mixed *= mixShort
		mixed ^= mixed>>35 + uint64(n)
		mixed *= mixShort
		return mixed ^ mixed>>28
	}
	return xxh3.HashStringSeed(key, h.seed)
}

// checksum returns the checksum of a section or of one partition's part of it.
func checksum(b []byte) uint64 {
	return xxh3.Hash(b)
}

// fingerprintOf returns the fingerprint that the slot of a key with this hash has.
func fingerprintOf(hash uint64) uint16 {
	return uint16(hash) | fingerprintBit
}

// overflowBit returns the bit of the key's overflow class.
func overflowBit(hash uint64) byte {
	return 1 << (hash >> 16 & 7)
}

// shardOf returns the number of the shard of a key, in a set of this many shards.
func shardOf(hash uint64, shards int) int {
	return int((hash >> 19 & 0xffff) * uint64(shards) >> 16)
}
