// LMDB, for comparison: one read transaction, values in place. Needs liblmdb-dev.
#ifndef LMDB_RIVAL_HPP
#define LMDB_RIVAL_HPP

#include <cstddef>
#include <cstdio>
#include <lmdb.h>
#include <stdexcept>
#include <string>
#include <vector>

class lmdb_rival {
  public:
    static constexpr const char *name = "lmdb mdb_get";

    // Creates a database of `count` rows.
    template <class Key, class Value>
    lmdb_rival(const std::string &path, std::size_t count, Key key_of, Value value_of) {
        std::remove(path.c_str());
        check(mdb_env_create(&env_));
        check(mdb_env_set_mapsize(env_, std::size_t{1} << 30));
        check(mdb_env_open(env_, path.c_str(), MDB_NOSUBDIR | MDB_NOSYNC | MDB_NOLOCK, 0600));
        check(mdb_txn_begin(env_, nullptr, 0, &txn_));
        check(mdb_dbi_open(txn_, nullptr, 0, &table_));
        for (std::size_t i = 0; i < count; i++) {
            std::string key = key_of(i), value = value_of(i);
            MDB_val k{key.size(), key.data()}, v{value.size(), value.data()};
            check(mdb_put(txn_, table_, &k, &v, 0));
        }
        check(mdb_txn_commit(txn_));
        check(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn_));
    }

    // Looks up all keys.
    template <class Use>
    std::size_t get(const std::vector<std::string> &keys, Use use) {
        std::size_t sum = 0;
        for (const auto &key : keys) {
            MDB_val k{key.size(), const_cast<char *>(key.data())}, value;
            if (mdb_get(txn_, table_, &k, &value) == 0) sum += use(value.mv_data, value.mv_size);
        }
        return sum;
    }

  private:
    static void check(int code) {
        if (code != 0) throw std::runtime_error(mdb_strerror(code));
    }

    MDB_env *env_ = nullptr;
    MDB_txn *txn_ = nullptr;
    MDB_dbi table_ = 0;
};

#endif
