/*
 * LMDB as a plug-in for kvmeter (Debian: liblmdb-dev): a transaction for each operation, as the
 * store `lmdb` that is built in has it, so that the two show what a plug-in costs.
 *
 *     cc -std=c11 -O2 -fPIC -shared -I include -o liblmdb_store.so examples/plugins/lmdb.c -llmdb
 *     kvmeter bench 'plugin:./liblmdb_store.so?path=/tmp/lmdb' --workload ycsb-c
 */
#include "kvmeter_store.h"

#include <errno.h>
#include <lmdb.h>
#include <stdlib.h>
#include <string.h>

struct kvmeter_db {
    MDB_env *env;
    MDB_dbi dbi;
    int sync;
};

/* A read transaction that is renewed for each read, as a cursor of it is for each scan. */
struct kvmeter_session {
    kvmeter_db *db;
    MDB_txn *read;
};

static kvmeter_status failed(kvmeter_error *error, int code)
{
    int full = code == ENOSPC || code == MDB_MAP_FULL;
    return kvmeter_fail(error, full ? KVMETER_FULL : KVMETER_FAILED, mdb_strerror(code));
}

static kvmeter_status open_db(const char *directory, const kvmeter_option *settings, size_t count,
                              kvmeter_db **out, kvmeter_error *error)
{
    unsigned long long map_size = 64ull << 30;
    int sync = 0;
    for (size_t at = 0; at < count; at++) {
        char *end;
        unsigned long long value = strtoull(settings[at].value, &end, 10);
        if (*end)
            return kvmeter_fail(error, KVMETER_INVALID, "an option takes a number");
        if (strcmp(settings[at].name, "map_size") == 0)
            map_size = value;
        else
            sync = value != 0;
    }
    kvmeter_db *db = calloc(1, sizeof *db);
    if (!db)
        return kvmeter_fail(error, KVMETER_FULL, "no memory");
    db->sync = sync;
    MDB_txn *txn = NULL;
    int code = mdb_env_create(&db->env);
    if (code == 0)
        code = mdb_env_set_mapsize(db->env, map_size);
    if (code == 0)
        code = mdb_env_set_maxreaders(db->env, 1024);
    if (code == 0)
        code = mdb_env_open(db->env, directory, MDB_NOTLS | (sync ? 0 : MDB_NOSYNC), 0600);
    if (code == 0)
        code = mdb_txn_begin(db->env, NULL, 0, &txn);
    if (code == 0 && (code = mdb_dbi_open(txn, NULL, 0, &db->dbi)) != 0)
        mdb_txn_abort(txn);
    if (code == 0)
        code = mdb_txn_commit(txn);
    if (code != 0) {
        mdb_env_close(db->env);
        free(db);
        return failed(error, code);
    }
    *out = db;
    return KVMETER_OK;
}

static void close_db(kvmeter_db *db)
{
    mdb_env_close(db->env);
    free(db);
}

static uint32_t capabilities(kvmeter_db *db)
{
    (void)db;
    return KVMETER_SCANS | KVMETER_DURABLE;
}

static kvmeter_status open_session(kvmeter_db *db, kvmeter_session **out, kvmeter_error *error)
{
    kvmeter_session *session = calloc(1, sizeof *session);
    if (!session)
        return kvmeter_fail(error, KVMETER_FULL, "no memory");
    session->db = db;
    int code = mdb_txn_begin(db->env, NULL, MDB_RDONLY, &session->read);
    if (code != 0) {
        free(session);
        return failed(error, code);
    }
    mdb_txn_reset(session->read);
    *out = session;
    return KVMETER_OK;
}

static void close_session(kvmeter_session *session)
{
    mdb_txn_abort(session->read);
    free(session);
}

static kvmeter_status get(kvmeter_session *session, const void *key, size_t key_length,
                          kvmeter_on_value found, void *context, kvmeter_error *error)
{
    MDB_val name = {key_length, (void *)key}, value;
    int code = mdb_txn_renew(session->read);
    if (code != 0)
        return failed(error, code);
    code = mdb_get(session->read, session->db->dbi, &name, &value);
    if (code == 0)
        found(context, value.mv_data, value.mv_size);
    mdb_txn_reset(session->read);
    return code == 0 ? KVMETER_OK : code == MDB_NOTFOUND ? KVMETER_NOT_FOUND : failed(error, code);
}

/* All keys in one transaction, which is one snapshot. */
static kvmeter_status multi_get(kvmeter_session *session, const kvmeter_key *keys, size_t count,
                                kvmeter_on_found found, void *context, kvmeter_error *error)
{
    int code = mdb_txn_renew(session->read);
    if (code != 0)
        return failed(error, code);
    for (size_t at = 0; at < count && (code == 0 || code == MDB_NOTFOUND); at++) {
        MDB_val name = {keys[at].length, (void *)keys[at].bytes}, value;
        code = mdb_get(session->read, session->db->dbi, &name, &value);
        if (code == 0)
            found(context, at, value.mv_data, value.mv_size);
    }
    mdb_txn_reset(session->read);
    return code == 0 || code == MDB_NOTFOUND ? KVMETER_OK : failed(error, code);
}

/* Sets the value of a key, or removes it without one. */
static int write_one(kvmeter_session *session, MDB_val *key, MDB_val *value)
{
    MDB_txn *txn;
    int code = mdb_txn_begin(session->db->env, NULL, 0, &txn);
    if (code != 0)
        return code;
    code = value ? mdb_put(txn, session->db->dbi, key, value, 0)
                 : mdb_del(txn, session->db->dbi, key, NULL);
    if (code != 0) {
        mdb_txn_abort(txn);
        return code;
    }
    return mdb_txn_commit(txn);
}

static kvmeter_status put(kvmeter_session *session, const void *key, size_t key_length,
                          const void *value, size_t value_length, kvmeter_error *error)
{
    MDB_val name = {key_length, (void *)key}, data = {value_length, (void *)value};
    int code = write_one(session, &name, &data);
    return code == 0 ? KVMETER_OK : failed(error, code);
}

static kvmeter_status remove_key(kvmeter_session *session, const void *key, size_t key_length,
                                 kvmeter_error *error)
{
    MDB_val name = {key_length, (void *)key};
    int code = write_one(session, &name, NULL);
    return code == 0 ? KVMETER_OK : code == MDB_NOTFOUND ? KVMETER_NOT_FOUND : failed(error, code);
}

static kvmeter_status scan(kvmeter_session *session, const void *from, size_t from_length,
                           size_t limit, kvmeter_on_pair each, void *context, kvmeter_error *error)
{
    MDB_val key = {from_length, (void *)from}, value;
    MDB_cursor *cursor = NULL;
    int more = 1, code = mdb_txn_renew(session->read);
    if (code != 0)
        return failed(error, code);
    code = mdb_cursor_open(session->read, session->db->dbi, &cursor);
    if (code == 0)
        code = mdb_cursor_get(cursor, &key, &value, from_length > 0 ? MDB_SET_RANGE : MDB_FIRST);
    while (code == 0 && more && limit-- > 0) {
        more = each(context, key.mv_data, key.mv_size, value.mv_data, value.mv_size);
        if (more && limit > 0)
            code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    if (cursor)
        mdb_cursor_close(cursor);
    mdb_txn_reset(session->read);
    return code == 0 || code == MDB_NOTFOUND ? KVMETER_OK : failed(error, code);
}

static kvmeter_status settle(kvmeter_db *db, uint64_t limit_ms, kvmeter_error *error)
{
    (void)limit_ms;
    int code = mdb_env_sync(db->env, 1);
    return code == 0 ? KVMETER_OK : failed(error, code);
}

static void statistics(kvmeter_db *db, kvmeter_on_statistic each, void *context)
{
    MDB_stat tree;
    MDB_envinfo file;
    if (mdb_env_stat(db->env, &tree) != 0 || mdb_env_info(db->env, &file) != 0)
        return;
    each(context, "entries", (double)tree.ms_entries, KVMETER_COUNT);
    each(context, "depth", tree.ms_depth, KVMETER_COUNT);
    each(context, "used", (double)(file.me_last_pgno + 1) * tree.ms_psize, KVMETER_BYTES);
}

static const kvmeter_option options[] = {
    {"map_size", "68719476736", "largest size of the data in bytes; only address space"},
    {"sync", "0", "1: each write waits until it is on the device"},
};

static kvmeter_store_table table = {
    .abi = KVMETER_STORE_ABI,
    .size = sizeof table,
    .name = "LMDB",
    .on_disk = 1,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .longest_key = 511,
    .open = open_db,
    .close = close_db,
    .capabilities = capabilities,
    .session_open = open_session,
    .session_close = close_session,
    .get = get,
    .put = put,
    .remove = remove_key,
    .scan = scan,
    .settle = settle,
    .statistics = statistics,
    .multi_get = multi_get,
};

const kvmeter_store_table *kvmeter_store(void)
{
    static char version[32];
    int major, minor, patch;
    mdb_version(&major, &minor, &patch);
    snprintf(version, sizeof version, "%d.%d.%d", major, minor, patch);
    table.version = version;
    return &table;
}
