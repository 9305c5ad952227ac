/*
 * WiredTiger as a plug-in for kvmeter (Debian: libwiredtiger-dev).
 *
 *     cc -std=c11 -O2 -fPIC -shared -I include -o libwiredtiger_store.so examples/plugins/wiredtiger.c -lwiredtiger
 *     kvmeter bench 'plugin:./libwiredtiger_store.so?path=/tmp/wt&cache=1GB' --workload ycsb-a
 */
#include "kvmeter_store.h"

#include <stdlib.h>
#include <string.h>
#include <wiredtiger.h>

#define TABLE "table:kvmeter"

struct kvmeter_db {
    WT_CONNECTION *connection;
    int durable;
};

/* WiredTiger's sessions and cursors belong to one thread, as kvmeter's do. */
struct kvmeter_session {
    WT_SESSION *session;
    WT_CURSOR *cursor;
};

static kvmeter_status failed(kvmeter_error *error, int code)
{
    return kvmeter_fail(error, code == 28 /* ENOSPC */ ? KVMETER_FULL : KVMETER_FAILED,
                        wiredtiger_strerror(code));
}

static const char *given(const kvmeter_option *settings, size_t count, const char *name,
                         const char *otherwise)
{
    for (size_t at = 0; at < count; at++)
        if (strcmp(settings[at].name, name) == 0)
            return settings[at].value;
    return otherwise;
}

static kvmeter_status open_db(const char *directory, const kvmeter_option *settings, size_t count,
                              kvmeter_db **out, kvmeter_error *error)
{
    char config[512];
    const char *log = given(settings, count, "log", "written");
    if (strcmp(log, "buffered") != 0 && strcmp(log, "written") != 0 && strcmp(log, "sync") != 0)
        return kvmeter_fail(error, KVMETER_INVALID, "`log` takes buffered, written or sync");
    int written = snprintf(
        config, sizeof config,
        "create,cache_size=%s,session_max=1024,statistics=(fast),log=(enabled=true),"
        "transaction_sync=(enabled=%s,method=%s)",
        given(settings, count, "cache", "100MB"), strcmp(log, "buffered") == 0 ? "false" : "true",
        strcmp(log, "sync") == 0 ? "fsync" : "none");
    if (written < 0 || (size_t)written >= sizeof config)
        return kvmeter_fail(error, KVMETER_INVALID, "the options are too long");
    kvmeter_db *db = calloc(1, sizeof *db);
    if (!db)
        return kvmeter_fail(error, KVMETER_FULL, "no memory");
    db->durable = strcmp(log, "buffered") != 0;
    int code = wiredtiger_open(directory, NULL, config, &db->connection);
    WT_SESSION *session = NULL;
    if (code == 0)
        code = db->connection->open_session(db->connection, NULL, NULL, &session);
    if (code == 0)
        code = session->create(session, TABLE, "key_format=u,value_format=u");
    if (session)
        session->close(session, NULL);
    if (code != 0) {
        if (db->connection)
            db->connection->close(db->connection, NULL);
        free(db);
        /* EINVAL: one of the values that became part of the configuration. */
        return code == 22 ? kvmeter_fail(error, KVMETER_INVALID, wiredtiger_strerror(code))
                          : failed(error, code);
    }
    *out = db;
    return KVMETER_OK;
}

static void close_db(kvmeter_db *db)
{
    db->connection->close(db->connection, NULL);
    free(db);
}

static uint32_t capabilities(kvmeter_db *db)
{
    return KVMETER_SCANS | (db->durable ? KVMETER_DURABLE : 0);
}

static kvmeter_status open_session(kvmeter_db *db, kvmeter_session **out, kvmeter_error *error)
{
    kvmeter_session *session = calloc(1, sizeof *session);
    if (!session)
        return kvmeter_fail(error, KVMETER_FULL, "no memory");
    int code = db->connection->open_session(db->connection, NULL, NULL, &session->session);
    if (code == 0)
        code = session->session->open_cursor(session->session, TABLE, NULL, "overwrite=true",
                                             &session->cursor);
    if (code != 0) {
        if (session->session)
            session->session->close(session->session, NULL);
        free(session);
        return failed(error, code);
    }
    *out = session;
    return KVMETER_OK;
}

static void close_session(kvmeter_session *session)
{
    session->session->close(session->session, NULL);
    free(session);
}

static void set_key(kvmeter_session *session, const void *key, size_t length)
{
    WT_ITEM item = {.data = key, .size = length};
    session->cursor->set_key(session->cursor, &item);
}

static kvmeter_status get(kvmeter_session *session, const void *key, size_t key_length,
                          kvmeter_on_value found, void *context, kvmeter_error *error)
{
    WT_CURSOR *cursor = session->cursor;
    WT_ITEM value;
    set_key(session, key, key_length);
    int code = cursor->search(cursor);
    if (code == 0)
        code = cursor->get_value(cursor, &value);
    if (code == 0)
        found(context, value.data, value.size); /* lent until the cursor moves */
    cursor->reset(cursor);
    return code == 0 ? KVMETER_OK : code == WT_NOTFOUND ? KVMETER_NOT_FOUND : failed(error, code);
}

/* A transaction that meets another one is begun again. */
static kvmeter_status put(kvmeter_session *session, const void *key, size_t key_length,
                          const void *value, size_t value_length, kvmeter_error *error)
{
    WT_CURSOR *cursor = session->cursor;
    WT_ITEM item = {.data = value, .size = value_length};
    int code;
    do {
        set_key(session, key, key_length);
        cursor->set_value(cursor, &item);
        code = cursor->insert(cursor);
    } while (code == WT_ROLLBACK);
    return code == 0 ? KVMETER_OK : failed(error, code);
}

static kvmeter_status remove_key(kvmeter_session *session, const void *key, size_t key_length,
                                 kvmeter_error *error)
{
    int code;
    do {
        set_key(session, key, key_length);
        code = session->cursor->remove(session->cursor);
    } while (code == WT_ROLLBACK);
    return code == 0 ? KVMETER_OK : code == WT_NOTFOUND ? KVMETER_NOT_FOUND : failed(error, code);
}

static kvmeter_status scan(kvmeter_session *session, const void *from, size_t from_length,
                           size_t limit, kvmeter_on_pair each, void *context, kvmeter_error *error)
{
    WT_CURSOR *cursor = session->cursor;
    WT_ITEM key, value;
    int near = 0, more = 1;
    int code = 0;
    if (from_length > 0) { /* it takes no empty keys; a cursor begins before the first one */
        set_key(session, from, from_length);
        code = cursor->search_near(cursor, &near);
    }
    if (code == 0 && (from_length == 0 || near < 0)) /* it stands below `from` */
        code = cursor->next(cursor);
    while (code == 0 && more && limit-- > 0) {
        if ((code = cursor->get_key(cursor, &key)) != 0
            || (code = cursor->get_value(cursor, &value)) != 0)
            break;
        more = each(context, key.data, key.size, value.data, value.size);
        if (more && limit > 0)
            code = cursor->next(cursor);
    }
    cursor->reset(cursor);
    return code == 0 || code == WT_NOTFOUND ? KVMETER_OK : failed(error, code);
}

/* A checkpoint writes out what is in the cache. */
static kvmeter_status settle(kvmeter_db *db, uint64_t limit_ms, kvmeter_error *error)
{
    WT_SESSION *session;
    (void)limit_ms;
    int code = db->connection->open_session(db->connection, NULL, NULL, &session);
    if (code == 0) {
        code = session->checkpoint(session, NULL);
        session->close(session, NULL);
    }
    return code == 0 ? KVMETER_OK : failed(error, code);
}

static void statistics(kvmeter_db *db, kvmeter_on_statistic each, void *context)
{
    static const struct { int key; const char *name; } told[] = {
        {WT_STAT_CONN_CACHE_BYTES_INUSE, "cache.used"},
        {WT_STAT_CONN_CACHE_BYTES_DIRTY, "cache.dirty"},
        {WT_STAT_CONN_LOG_BYTES_WRITTEN, "log.written.total"},
    };
    WT_SESSION *session;
    WT_CURSOR *cursor;
    if (db->connection->open_session(db->connection, NULL, NULL, &session) != 0)
        return;
    if (session->open_cursor(session, "statistics:", NULL, "statistics=(fast)", &cursor) == 0)
        for (size_t at = 0; at < sizeof told / sizeof told[0]; at++) {
            const char *description, *text;
            int64_t value;
            cursor->set_key(cursor, told[at].key);
            if (cursor->search(cursor) == 0
                && cursor->get_value(cursor, &description, &text, &value) == 0)
                each(context, told[at].name, (double)value, KVMETER_BYTES);
        }
    session->close(session, NULL);
}

static const kvmeter_option options[] = {
    {"cache", "100MB", "size of the cache, as WiredTiger writes it: 512MB, 2GB"},
    {"log", "written", "a write waits until its log is buffered, written, or on the device: sync"},
};

static kvmeter_store_table table = {
    .abi = KVMETER_STORE_ABI,
    .size = sizeof table,
    .name = "WiredTiger",
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
    .settle = settle,
    .statistics = statistics,
};

const kvmeter_store_table *kvmeter_store(void)
{
    static char version[32];
    int major, minor, patch;
    wiredtiger_version(&major, &minor, &patch);
    snprintf(version, sizeof version, "%d.%d.%d", major, minor, patch);
    table.version = version;
    return &table;
}
