module github.com/nuthatch-kv/nuthatch/bindings/go/bench

go 1.25.0

require (
	github.com/nuthatch-kv/nuthatch/bindings/go v0.0.0
	go.etcd.io/bbolt v1.4.3
)

require (
	github.com/klauspost/compress v1.20.3 // indirect
	github.com/klauspost/cpuid/v2 v2.2.10 // indirect
	github.com/zeebo/xxh3 v1.1.0 // indirect
	golang.org/x/sys v0.40.0 // indirect
)

replace github.com/nuthatch-kv/nuthatch/bindings/go => ../
