/*
 * LevelDB as a plug-in for kvmeter (Debian: libleveldb-dev).
 *
 *     cc -std=c11 -O2 -fPIC -shared -I include -o libleveldb.so examples/plugins/leveldb.c -lleveldb
 *     kvmeter bench 'plugin:./libleveldb.so?path=/tmp/leveldb&cache=268435456' --workload ycsb-a
 */
#include "kvmeter_store.h"

#include <leveldb/c.h>
#include <stdlib.h>
#include <string.h>

struct kvmeter_db {
    leveldb_t *db;
    leveldb_options_t *options;
    leveldb_cache_t *cache;
    leveldb_filterpolicy_t *filter;
    leveldb_writeoptions_t *write;
    int sync;
};

struct kvmeter_session {
    kvmeter_db *db;
    leveldb_readoptions_t *read;
};

/* LevelDB's sentence becomes ours. */
static kvmeter_status failed(kvmeter_error *error, char *why)
{
    int full = strstr(why, "No space left") != NULL;
    kvmeter_fail(error, KVMETER_FAILED, why);
    leveldb_free(why);
    return full ? KVMETER_FULL : KVMETER_FAILED;
}

/* The number of an option: from the settings, else its default. */
static int number(const kvmeter_option *settings, size_t count, const char *name, size_t *value)
{
    for (size_t at = 0; at < count; at++)
        if (strcmp(settings[at].name, name) == 0) {
            char *end;
            *value = strtoull(settings[at].value, &end, 10);
            return *end == 0;
        }
    return 1;
}

static void close_db(kvmeter_db *db)
{
    if (db->db)
        leveldb_close(db->db);
    if (db->filter)
        leveldb_filterpolicy_destroy(db->filter);
    leveldb_cache_destroy(db->cache);
    leveldb_options_destroy(db->options);
    leveldb_writeoptions_destroy(db->write);
    free(db);
}

static kvmeter_status open_db(const char *directory, const kvmeter_option *settings, size_t count,
                              kvmeter_db **out, kvmeter_error *error)
{
    size_t cache = 8 << 20, write_buffer = 4 << 20, bloom_bits = 0, sync = 0;
    if (!number(settings, count, "cache", &cache)
        || !number(settings, count, "write_buffer", &write_buffer)
        || !number(settings, count, "bloom_bits", &bloom_bits)
        || !number(settings, count, "sync", &sync))
        return kvmeter_fail(error, KVMETER_INVALID, "an option takes a number, in bytes or bits");
    kvmeter_db *db = calloc(1, sizeof *db);
    if (!db)
        return kvmeter_fail(error, KVMETER_FULL, "no memory");
    db->options = leveldb_options_create();
    db->cache = leveldb_cache_create_lru(cache);
    db->write = leveldb_writeoptions_create();
    db->sync = sync != 0;
    leveldb_writeoptions_set_sync(db->write, (unsigned char)db->sync);
    leveldb_options_set_create_if_missing(db->options, 1);
    leveldb_options_set_cache(db->options, db->cache);
    leveldb_options_set_write_buffer_size(db->options, write_buffer);
    if (bloom_bits > 0) {
        db->filter = leveldb_filterpolicy_create_bloom((int)bloom_bits);
        leveldb_options_set_filter_policy(db->options, db->filter);
    }
    char *why = NULL;
    db->db = leveldb_open(db->options, directory, &why);
    if (why) {
        close_db(db);
        return failed(error, why);
    }
    *out = db;
    return KVMETER_OK;
}

/* Its log is written without a sync, so a kill of the process loses nothing. */
static uint32_t capabilities(kvmeter_db *db)
{
    (void)db;
    return KVMETER_SCANS | KVMETER_DURABLE;
}

static kvmeter_status open_session(kvmeter_db *db, kvmeter_session **out, kvmeter_error *error)
{
    kvmeter_session *session = malloc(sizeof *session);
    if (!session)
        return kvmeter_fail(error, KVMETER_FULL, "no memory");
    session->db = db;
    session->read = leveldb_readoptions_create();
    *out = session;
    return KVMETER_OK;
}

static void close_session(kvmeter_session *session)
{
    leveldb_readoptions_destroy(session->read);
    free(session);
}

static kvmeter_status get(kvmeter_session *session, const void *key, size_t key_length,
                          kvmeter_on_value found, void *context, kvmeter_error *error)
{
    size_t length;
    char *why = NULL;
    char *value = leveldb_get(session->db->db, session->read, key, key_length, &length, &why);
    if (why)
        return failed(error, why);
    if (!value)
        return KVMETER_NOT_FOUND;
    found(context, value, length);
    leveldb_free(value);
    return KVMETER_OK;
}

static kvmeter_status put(kvmeter_session *session, const void *key, size_t key_length,
                          const void *value, size_t value_length, kvmeter_error *error)
{
    char *why = NULL;
    leveldb_put(session->db->db, session->db->write, key, key_length, value, value_length, &why);
    return why ? failed(error, why) : KVMETER_OK;
}

static kvmeter_status remove_key(kvmeter_session *session, const void *key, size_t key_length,
                                 kvmeter_error *error)
{
    char *why = NULL;
    leveldb_delete(session->db->db, session->db->write, key, key_length, &why);
    return why ? failed(error, why) : KVMETER_OK;
}

static kvmeter_status scan(kvmeter_session *session, const void *from, size_t from_length,
                           size_t limit, kvmeter_on_pair each, void *context, kvmeter_error *error)
{
    leveldb_iterator_t *at = leveldb_create_iterator(session->db->db, session->read);
    leveldb_iter_seek(at, from, from_length);
    for (int more = 1; more && limit > 0 && leveldb_iter_valid(at); limit--) {
        size_t key_length, value_length;
        const char *key = leveldb_iter_key(at, &key_length);
        const char *value = leveldb_iter_value(at, &value_length);
        more = each(context, key, key_length, value, value_length);
        leveldb_iter_next(at);
    }
    char *why = NULL;
    leveldb_iter_get_error(at, &why);
    leveldb_iter_destroy(at);
    return why ? failed(error, why) : KVMETER_OK;
}

static void statistics(kvmeter_db *db, kvmeter_on_statistic each, void *context)
{
    char *files = leveldb_property_value(db->db, "leveldb.num-files-at-level0");
    char *memory = leveldb_property_value(db->db, "leveldb.approximate-memory-usage");
    if (files)
        each(context, "level0.files", strtod(files, NULL), KVMETER_COUNT);
    if (memory)
        each(context, "memory", strtod(memory, NULL), KVMETER_BYTES);
    leveldb_free(files);
    leveldb_free(memory);
}

static const kvmeter_option options[] = {
    {"cache", "8388608", "bytes of the block cache"},
    {"write_buffer", "4194304", "bytes of the memtable"},
    {"bloom_bits", "0", "bits of the filter for a key; 0: none"},
    {"sync", "0", "1: each write waits until it is on the device"},
};

static kvmeter_store_table table = {
    .abi = KVMETER_STORE_ABI,
    .size = sizeof table,
    .name = "LevelDB",
    .on_disk = 1,
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .open = open_db,
    .close = close_db,
    .capabilities = capabilities,
    .session_open = open_session,
    .session_close = close_session,
    .get = get,
    .put = put,
    .remove = remove_key,
    .scan = scan,
    .statistics = statistics,
};

const kvmeter_store_table *kvmeter_store(void)
{
    static char version[32];
    snprintf(version, sizeof version, "%d.%d", leveldb_major_version(), leveldb_minor_version());
    table.version = version;
    return &table;
}
