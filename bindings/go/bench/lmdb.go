package main

// #cgo LDFLAGS: -llmdb
// #include <lmdb.h>
//
// // The wrappers take addresses and lengths, since cgo passes no structs that hold Go's pointers.
// static int put(MDB_txn *txn, MDB_dbi dbi, void *key, size_t key_len, void *value, size_t len) {
//     MDB_val k = {key_len, key}, v = {len, value};
//     return mdb_put(txn, dbi, &k, &v, MDB_APPEND);
// }
// static int get(MDB_txn *txn, MDB_dbi dbi, const void *key, size_t key_len, MDB_val *value) {
//     MDB_val k = {key_len, (void *)key};
//     return mdb_get(txn, dbi, &k, value);
// }
import "C"

import (
	"errors"
	"fmt"
	"os"
	"unsafe"
)

// lmdb is a database of LMDB and a read transaction, called through cgo as bindings for Go do. It
// stays open until the program ends.
type lmdb struct {
	txn *C.MDB_txn
	dbi C.MDB_dbi
}

// newLMDB writes rows, which are sorted by key, to a database in a folder.
func newLMDB(folder string, rows [][2]string) (*lmdb, error) {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	path := C.CString(folder)
	var env *C.MDB_env
	var txn *C.MDB_txn
	l := &lmdb{}
	err := errors.Join(check(C.mdb_env_create(&env)),
		check(C.mdb_env_set_mapsize(env, 1<<32)),
		check(C.mdb_env_open(env, path, C.MDB_NOSYNC, 0o600)),
		check(C.mdb_txn_begin(env, nil, 0, &txn)),
		check(C.mdb_dbi_open(txn, nil, 0, &l.dbi)))
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		key, value := unsafe.StringData(row[0]), unsafe.StringData(row[1])
		status := C.put(txn, l.dbi, unsafe.Pointer(key), C.size_t(len(row[0])),
			unsafe.Pointer(value), C.size_t(len(row[1])))
		if err := check(status); err != nil {
			return nil, err
		}
	}
	if err := check(C.mdb_txn_commit(txn)); err != nil {
		return nil, err
	}
	return l, check(C.mdb_txn_begin(env, nil, C.MDB_RDONLY, &l.txn))
}

// lookup looks up all keys in one transaction, and copies each value to a string.
func (l *lmdb) lookup(keys []string) (int, error) {
	sum := 0
	var value C.MDB_val
	for _, key := range keys {
		status := C.get(l.txn, l.dbi, unsafe.Pointer(unsafe.StringData(key)),
			C.size_t(len(key)), &value)
		if err := check(status); err != nil {
			return 0, err
		}
		sum += len(C.GoStringN((*C.char)(value.mv_data), C.int(value.mv_size)))
	}
	return sum, nil
}

func check(status C.int) error {
	if status == 0 {
		return nil
	}
	return fmt.Errorf("LMDB: %s", C.GoString(C.mdb_strerror(status)))
}
