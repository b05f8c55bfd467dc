/* Calls the functions of the header. Ends with 0, or prints the line of the check that failed. The
 * argument is a folder in which it may create stores. */
#include "nuthatch.h"
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static nuthatch_error error;

#define CHECK(holds)                                                                       \
    do {                                                                                   \
        if (!(holds)) {                                                                    \
            fprintf(stderr, "line %d: %s; last error: %d %s\n", __LINE__, #holds, error.code, \
                    (const char *)error.message);                                          \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)
#define OK(call) CHECK((call) == 0)
#define FAILS(name, call) CHECK(strcmp(nuthatch_code_name(call), name) == 0)
#define TEXT(text) (const uint8_t *)(text), strlen(text)

static nuthatch_store open_store(const char *path) {
    /* Allowing a network filesystem changes nothing for a folder on a local one. */
    nuthatch_store_options options = {.create = 1, .allow_network_filesystem = 1};
    nuthatch_store store = 0;
    OK(nuthatch_store_open(TEXT(path), &options, &store, &error));
    return store;
}

static nuthatch_store_table open_table(nuthatch_store store, const char *name, uint32_t kind) {
    nuthatch_store_table table = 0;
    OK(nuthatch_store_open_table(store, TEXT(name), kind, &table, &error));
    return table;
}

static void put(nuthatch_store_table table, const char *key, const char *value) {
    OK(nuthatch_store_put(table, TEXT(key), TEXT(value), &error));
}

/* All keys of a scan, one after the other. */
static const char *keys(nuthatch_store_table table, const nuthatch_store_scan_options *options) {
    static char found[256];
    nuthatch_store_scan scan;
    const nuthatch_store_row *rows;
    size_t count, len = 0;
    OK(nuthatch_store_open_scan(table, options, &scan, &error));
    do {
        OK(nuthatch_store_scan_next(scan, &rows, &count, &error));
        for (size_t i = 0; i < count; i++) {
            memcpy(found + len, rows[i].key, rows[i].key_len);
            len += rows[i].key_len;
        }
    } while (count > 0);
    found[len] = 0;
    OK(nuthatch_store_close_scan(scan, &error));
    return found;
}

static void lookups(nuthatch_store_table table) {
    nuthatch_store_entry entry;
    uint8_t value[8];
    put(table, "a", "one");
    put(table, "b", "");
    OK(nuthatch_store_get(table, TEXT("a"), value, sizeof value, &entry, &error));
    CHECK(entry.found && entry.value_len == 3 && memcmp(entry.value, "one", 3) == 0);
    OK(nuthatch_store_get(table, TEXT("a"), value, 2, &entry, &error));
    CHECK(entry.found && entry.value == NULL && entry.value_len == 3);
    OK(nuthatch_store_get(table, TEXT("b"), NULL, 0, &entry, &error));
    CHECK(entry.found && entry.value_len == 0);
    OK(nuthatch_store_get(table, TEXT("c"), NULL, 0, &entry, &error));
    CHECK(!entry.found);
    uint32_t found;
    OK(nuthatch_store_delete(table, TEXT("b"), &found, &error));
    CHECK(found);
    OK(nuthatch_store_delete(table, TEXT("b"), NULL, NULL));
}

static void scans(nuthatch_store_table table) {
    const char *all[] = {"c", "d", "e", "ee", "f"};
    for (size_t i = 0; i < 5; i++) put(table, all[i], "v");
    nuthatch_store_scan_options options = {.batch_rows = 2};
    CHECK(strcmp(keys(table, &options), "acdeeef") == 0);
    CHECK(strcmp(keys(table, NULL), "acdeeef") == 0);
    options.range = (nuthatch_store_range){TEXT("e"), NULL, 0, NUTHATCH_STORE_PREFIX, 0};
    options.flags = NUTHATCH_STORE_REVERSE;
    CHECK(strcmp(keys(table, &options), "eee") == 0);
    options.range.start_bound = NUTHATCH_STORE_EXCLUDED;
    options.has_limit = options.limit = 1;
    CHECK(strcmp(keys(table, &options), "f") == 0);
    uint64_t count;
    OK(nuthatch_store_count(table, &options.range, &count, &error));
    CHECK(count == 2);
    options.range.start_bound = 9;
    FAILS("argument", nuthatch_store_count(table, &options.range, &count, &error));
    CHECK(error.code == 100 && error.message[0]);
}

static void parts(nuthatch_store_table table) {
    nuthatch_store_scan scans[32];
    size_t count, rows_count, all = 0;
    const nuthatch_store_row *rows;
    OK(nuthatch_store_open_parts(table, NULL, 2, NULL, 0, scans, 32, &count, &error));
    for (size_t i = 0; i < count; i++) {
        do {
            OK(nuthatch_store_scan_next(scans[i], &rows, &rows_count, &error));
            all += rows_count;
        } while (rows_count > 0);
        OK(nuthatch_store_close_scan(scans[i], &error));
    }
    CHECK(count >= 1 && all == 6);
}

static void read_transactions(nuthatch_store store, nuthatch_store_table table) {
    nuthatch_store_read_transaction txn;
    uint64_t transaction;
    OK(nuthatch_store_open_read_transaction(store, &txn, &transaction, NULL, &error));
    CHECK(transaction > 0);
    put(table, "a", "two");
    nuthatch_store_key wanted[] = {{TEXT("a")}, {TEXT("nobody")}};
    nuthatch_store_entry entries[2];
    OK(nuthatch_store_read_transaction_get(txn, table, wanted, entries, 2, &error));
    CHECK(entries[0].found && memcmp(entries[0].value, "one", 3) == 0 && !entries[1].found);
    nuthatch_store_row rows[4];
    size_t count;
    OK(nuthatch_store_read_transaction_rows(txn, table, NULL, rows, 4, &count, &error));
    CHECK(count == 4 && memcmp(rows[0].value, "one", 3) == 0 && rows[1].key[0] == 'c');
    OK(nuthatch_store_close_read_transaction(txn, &error));
    FAILS("closed", nuthatch_store_close_read_transaction(txn, &error));
}

static nuthatch_store_writer writer;

static void *take_acks(void *to_take) {
    nuthatch_store_ack acks[4];
    for (size_t left = (size_t)to_take; left > 0;) {
        size_t count;
        OK(nuthatch_store_take_acks(writer, 60000, acks, 4, &count, &error));
        for (size_t i = 0; i < count; i++) {
            if (acks[i].tag == 7) CHECK(acks[i].error.code != 0 && acks[i].error.position == 1);
            else CHECK(acks[i].error.code == 0 && acks[i].written.transaction > 0);
        }
        left -= count;
    }
    return NULL;
}

static void writers(nuthatch_store store, nuthatch_store_table table) {
    OK(nuthatch_store_open_writer(store, NULL, &writer, &error));
    pthread_t taker;
    CHECK(pthread_create(&taker, NULL, take_acks, (void *)10) == 0);
    for (uint64_t tag = 0; tag < 10; tag++) {
        nuthatch_store_write writes[] = {
            {.table = table, .operation = NUTHATCH_STORE_PUT,
             .key = (const uint8_t *)"w", .key_len = 1},
            {.table = table, .operation = NUTHATCH_STORE_CHECK,
             .key = (const uint8_t *)"w", .key_len = 1,
             .condition = tag == 7 ? NUTHATCH_STORE_ABSENT : NUTHATCH_STORE_PRESENT},
        };
        OK(nuthatch_store_submit(writer, writes, 2, tag, &error));
    }
    OK(nuthatch_store_finish_writer(writer, &error));
    CHECK(pthread_join(taker, NULL) == 0);
    size_t count;
    nuthatch_store_ack ack;
    FAILS("closed", nuthatch_store_take_acks(writer, 0, &ack, 1, &count, &error));
    FAILS("closed", nuthatch_store_submit(writer, NULL, 0, 1, &error));
    OK(nuthatch_store_close_writer(writer, &error));
}

static void *stop_watch(void *watch) {
    OK(nuthatch_store_stop_watch(*(nuthatch_store_watch *)watch, NULL));
    return NULL;
}

static void watches(nuthatch_store store, nuthatch_store_table table) {
    nuthatch_store_watch watch;
    FAILS("no-changes-kept", nuthatch_store_open_watch(store, table, NULL, 0, 0, &watch, &error));
    OK(nuthatch_store_keep_changes(store, 100, 1 << 20, &error));
    OK(nuthatch_store_open_watch(store, table, NULL, NUTHATCH_STORE_FROM_NOW, 0, &watch, &error));
    put(table, "watched", "yes");
    const nuthatch_store_change *changes;
    size_t count;
    OK(nuthatch_store_watch_next(watch, 60000, &changes, &count, &error));
    CHECK(count == 1 && changes[0].operation == NUTHATCH_STORE_CHANGED_PUT);
    CHECK(changes[0].key_len == 7 && memcmp(changes[0].value, "yes", 3) == 0);
    OK(nuthatch_store_watch_next(watch, 0, &changes, &count, &error));
    CHECK(count == 0);
    pthread_t stopper;
    CHECK(pthread_create(&stopper, NULL, stop_watch, &watch) == 0);
    FAILS("closed", nuthatch_store_watch_next(watch, 60000, &changes, &count, NULL));
    CHECK(pthread_join(stopper, NULL) == 0);
    OK(nuthatch_store_close_watch(watch, &error));
}

static void count_pages(void *user, uint64_t done, uint64_t all) {
    CHECK(done <= all);
    *(uint64_t *)user = all;
}

static void upkeep(nuthatch_store store, const char *folder) {
    char path[4096];
    nuthatch_store_stat stat;
    OK(nuthatch_store_stat_of(store, &stat, &error));
    CHECK(stat.page_bytes >= 4096 && stat.keeps_changes);
    uint64_t counted = 0;
    nuthatch_store_verified verified;
    OK(nuthatch_store_verify(store, count_pages, &counted, &verified, &error));
    CHECK(verified.pages > 2 && counted == verified.pages && verified.tables >= 2);
    snprintf(path, sizeof path, "%s/copy", folder);
    OK(nuthatch_store_backup(store, TEXT(path), 1, &error));
    uint64_t before, after;
    OK(nuthatch_store_compact(TEXT(path), &before, &after, &error));
    CHECK(after > 0 && after <= before);
    size_t len;
    OK(nuthatch_store_table_names(store, (uint8_t *)path, sizeof path, &len, &error));
    CHECK(len == 5 && strcmp(path, "rows") == 0);
    OK(nuthatch_store_sync(store, &error));
    OK(nuthatch_store_sweep(store, NULL, &error));
}

static void stamps(nuthatch_store store) {
    nuthatch_store_table table = open_table(store, "stamped", NUTHATCH_STORE_STAMPED);
    nuthatch_store_entry entry;
    uint32_t kind;
    put(table, "s", "v");
    OK(nuthatch_store_get(table, TEXT("s"), NULL, 0, &entry, &error));
    CHECK(entry.is_stamped && entry.version > 0);
    OK(nuthatch_store_table_kind(table, &kind, &error));
    CHECK(kind == NUTHATCH_STORE_STAMPED);
    FAILS("table", nuthatch_store_open_table(store, TEXT("stamped"), NUTHATCH_STORE_PLAIN, &table,
                                             &error));
    const uint8_t *xy = (const uint8_t *)"xy";
    nuthatch_store_row rows[2] = {{xy, NULL, 1, 0}, {xy + 1, NULL, 1, 0}};
    OK(nuthatch_store_append(table, rows, 2, &error));
    FAILS("unordered", nuthatch_store_append(table, rows, 2, &error));
}

static void misuse(nuthatch_store store, nuthatch_store_table table) {
    uint64_t count;
    FAILS("handle", nuthatch_store_count(UINT64_MAX, NULL, &count, &error));
    FAILS("handle", nuthatch_store_count(0, NULL, &count, &error));
    FAILS("handle", nuthatch_store_count(store, NULL, &count, &error));
    FAILS("argument", nuthatch_store_count(table, NULL, NULL, &error));
    FAILS("argument", nuthatch_store_put(table, NULL, 3, NULL, 0, &error));
    FAILS("length", nuthatch_store_put(table, NULL, 0, NULL, 0, &error));
    CHECK(strcmp(nuthatch_code_name(-1), "unknown") == 0 && nuthatch_version()[0] != 0);
}

/* What runs when the store is closed fails, and rows that were handed out can still be read. */
static void closing(nuthatch_store store, nuthatch_store_table table) {
    nuthatch_store_scan_options one = {.batch_rows = 1};
    nuthatch_store_scan scan;
    const nuthatch_store_row *rows, *more;
    size_t count;
    OK(nuthatch_store_open_scan(table, &one, &scan, &error));
    OK(nuthatch_store_scan_next(scan, &rows, &count, &error));
    OK(nuthatch_store_close(store, &error));
    CHECK(count == 1 && rows[0].key[0] == 'a');
    FAILS("closed", nuthatch_store_scan_next(scan, &more, &count, &error));
    FAILS("closed", nuthatch_store_put(table, TEXT("a"), TEXT("b"), &error));
    FAILS("closed", nuthatch_store_close(store, &error));
    OK(nuthatch_store_close_scan(scan, &error));
}

/* What the child may do with the handles of its parent: nothing but close them. */
struct forked {
    nuthatch_store store;
    nuthatch_store_table table;
    nuthatch_store_scan scan;
    nuthatch_store_read_transaction txn;
    nuthatch_store_writer writer;
    nuthatch_store_watch watch;
};

static void use_in_child(const struct forked *parent) {
    nuthatch_store_table table = parent->table;
    nuthatch_store_entry entry;
    nuthatch_store_key key = {TEXT("parent")};
    nuthatch_store_write write = {.table = table, .operation = NUTHATCH_STORE_PUT,
                                  .key = (const uint8_t *)"w", .key_len = 1};
    const nuthatch_store_row *rows;
    const nuthatch_store_change *changes;
    nuthatch_store_ack ack;
    nuthatch_store_stat stat;
    nuthatch_store_scan scan;
    nuthatch_store_writer other;
    uint64_t count;
    size_t len;
    FAILS("closed", nuthatch_store_put(table, TEXT("a"), TEXT("b"), &error));
    FAILS("closed", nuthatch_store_delete(table, TEXT("a"), NULL, &error));
    FAILS("closed", nuthatch_store_get(table, TEXT("a"), NULL, 0, &entry, &error));
    FAILS("closed", nuthatch_store_count(table, NULL, &count, &error));
    /* A scan begins with its first batch. */
    OK(nuthatch_store_open_scan(table, NULL, &scan, &error));
    FAILS("closed", nuthatch_store_scan_next(scan, &rows, &len, &error));
    OK(nuthatch_store_close_scan(scan, &error));
    FAILS("closed", nuthatch_store_open_writer(parent->store, NULL, &other, &error));
    FAILS("closed", nuthatch_store_stat_of(parent->store, &stat, &error));
    FAILS("closed", nuthatch_store_scan_next(parent->scan, &rows, &len, &error));
    FAILS("closed",
          nuthatch_store_read_transaction_get(parent->txn, table, &key, &entry, 1, &error));
    FAILS("closed", nuthatch_store_submit(parent->writer, &write, 1, 1, &error));
    FAILS("closed", nuthatch_store_take_acks(parent->writer, 60000, &ack, 1, &len, &error));
    FAILS("closed", nuthatch_store_finish_writer(parent->writer, &error));
    FAILS("closed", nuthatch_store_watch_next(parent->watch, 60000, &changes, &len, &error));
    OK(nuthatch_store_close_scan(parent->scan, &error));
    OK(nuthatch_store_close_read_transaction(parent->txn, &error));
    OK(nuthatch_store_close_writer(parent->writer, &error));
    OK(nuthatch_store_close_watch(parent->watch, &error));
    OK(nuthatch_store_close(parent->store, &error));
}

/* Returns whether a thread of this process sleeps, by the state in its /proc file. A thread that
 * has ended sleeps, too. */
static int sleeps(const char *id) {
    char path[64], stat[512];
    snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", id);
    FILE *file = fopen(path, "r");
    if (!file) {
        return 1;
    }
    size_t len = fread(stat, 1, sizeof stat - 1, file);
    fclose(file);
    stat[len] = 0;
    /* The name of the thread, in parentheses, may contain any character. */
    const char *name_end = strrchr(stat, ')');
    return !name_end || name_end[1] == 0 || name_end[2] == 'S';
}

/* Waits until all other threads sleep. The address sanitizer of GCC 12 does not hold the locks of
 * its allocator across a fork: if another thread is within malloc, the child waits forever. */
static void wait_until_other_threads_sleep(void) {
    char own[32];
    snprintf(own, sizeof own, "%d", (int)getpid());
    for (int all = 0; !all; sched_yield()) {
        DIR *threads = opendir("/proc/self/task");
        CHECK(threads);
        all = 1;
        for (struct dirent *thread; (thread = readdir(threads));) {
            int is_other = thread->d_name[0] != '.' && strcmp(thread->d_name, own) != 0;
            all = all && (!is_other || sleeps(thread->d_name));
        }
        closedir(threads);
    }
}

/* In a child made by fork what its parent opened fails; the child opens the store itself, and the
 * parent goes on where it was. */
static void forking(const char *path) {
    nuthatch_store_scan_options one = {.batch_rows = 1};
    struct forked opened = {.store = open_store(path)};
    nuthatch_store_table table = opened.table =
        open_table(opened.store, "forks", NUTHATCH_STORE_PLAIN);
    const nuthatch_store_row *rows;
    const nuthatch_store_change *changes;
    nuthatch_store_ack ack;
    size_t count;
    put(table, "parent", "1");
    put(table, "parents", "2");
    OK(nuthatch_store_keep_changes(opened.store, 100, 1 << 20, &error));
    OK(nuthatch_store_open_scan(table, &one, &opened.scan, &error));
    OK(nuthatch_store_scan_next(opened.scan, &rows, &count, &error));
    OK(nuthatch_store_open_read_transaction(opened.store, &opened.txn, NULL, NULL, &error));
    OK(nuthatch_store_open_writer(opened.store, NULL, &opened.writer, &error));
    OK(nuthatch_store_open_watch(opened.store, table, NULL, NUTHATCH_STORE_FROM_NOW, 0,
                                 &opened.watch, &error));
    wait_until_other_threads_sleep();
    pid_t child = fork();
    if (child == 0) {
        use_in_child(&opened);
        nuthatch_store store = open_store(path);
        put(open_table(store, "forks", NUTHATCH_STORE_PLAIN), "child", "wrote");
        OK(nuthatch_store_close(store, &error));
        _exit(0);
    }
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    CHECK(rows[0].key_len == 6 && memcmp(rows[0].key, "parent", 6) == 0);
    OK(nuthatch_store_scan_next(opened.scan, &rows, &count, &error));
    CHECK(count == 1 && rows[0].key_len == 7);
    nuthatch_store_entry entry;
    nuthatch_store_key key = {TEXT("child")};
    OK(nuthatch_store_read_transaction_get(opened.txn, table, &key, &entry, 1, &error));
    CHECK(!entry.found);
    OK(nuthatch_store_watch_next(opened.watch, 60000, &changes, &count, &error));
    CHECK(count == 1 && memcmp(changes[0].key, "child", 5) == 0);
    nuthatch_store_write write = {.table = table, .operation = NUTHATCH_STORE_PUT,
                                  .key = (const uint8_t *)"w", .key_len = 1};
    OK(nuthatch_store_submit(opened.writer, &write, 1, 1, &error));
    OK(nuthatch_store_take_acks(opened.writer, 60000, &ack, 1, &count, &error));
    CHECK(count == 1 && ack.error.code == 0);
    uint64_t all;
    OK(nuthatch_store_count(table, NULL, &all, &error));
    CHECK(all == 4);
    OK(nuthatch_store_close_scan(opened.scan, &error));
    OK(nuthatch_store_close_read_transaction(opened.txn, &error));
    OK(nuthatch_store_close_writer(opened.writer, &error));
    OK(nuthatch_store_close_watch(opened.watch, &error));
    OK(nuthatch_store_close(opened.store, &error));
}

int main(int argc, char **argv) {
    char path[4096];
    CHECK(argc == 2);
    snprintf(path, sizeof path, "%s/store", argv[1]);
    nuthatch_store store = open_store(path);
    nuthatch_store_table table = open_table(store, "rows", NUTHATCH_STORE_PLAIN);
    lookups(table);
    scans(table);
    parts(table);
    read_transactions(store, table);
    writers(store, table);
    watches(store, table);
    upkeep(store, argv[1]);
    stamps(store);
    misuse(store, table);
    closing(store, table);
    store = open_store(path);
    OK(nuthatch_store_close(store, &error));
    forking(path);
    return 0;
}
