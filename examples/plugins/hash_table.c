/*
 * A hash table in memory as a plug-in for kvmeter: a complete store in one file of C11.
 *
 *     cc -std=c11 -O2 -fPIC -shared -pthread -I include -o libhash_table.so examples/plugins/hash_table.c
 *     kvmeter bench 'plugin:./libhash_table.so?buckets=2000000' --records 1M --workload ycsb-b
 */
#define _POSIX_C_SOURCE 200809L

#include "kvmeter_store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LOCKS 1024

typedef struct record {
    struct record *next;
    size_t key_length, value_length;
    unsigned char bytes[]; /* the key, then the value */
} record;

struct kvmeter_db {
    size_t buckets;
    record **heads;
    pthread_rwlock_t locks[LOCKS]; /* one for every LOCKS-th bucket */
};

/* A session needs nothing of its own here, so it is the database. */
static kvmeter_db *table_of(kvmeter_session *session) { return (kvmeter_db *)session; }

static size_t bucket_of(const kvmeter_db *db, const void *key, size_t length)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t at = 0; at < length; at++)
        hash = (hash ^ ((const unsigned char *)key)[at]) * 1099511628211u;
    return (hash ^ hash >> 32) % db->buckets;
}

/* The place that leads to the record of a key, or to the end of its chain. */
static record **find(kvmeter_db *db, size_t bucket, const void *key, size_t length)
{
    record **at = &db->heads[bucket];
    while (*at && ((*at)->key_length != length || memcmp((*at)->bytes, key, length) != 0))
        at = &(*at)->next;
    return at;
}

static kvmeter_status open_table(const char *directory, const kvmeter_option *settings, size_t count,
                                 kvmeter_db **db, kvmeter_error *error)
{
    size_t buckets = 1 << 20;
    (void)directory;
    if (count > 0) { /* the table declares one option */
        char *end;
        buckets = strtoull(settings[0].value, &end, 10);
        if (*end || buckets == 0 || buckets > (size_t)1 << 36)
            return kvmeter_fail(error, KVMETER_INVALID, "`buckets` takes a number from 1 to 2^36");
    }
    if (!(*db = malloc(sizeof **db)))
        return kvmeter_fail(error, KVMETER_FULL, "no memory");
    (*db)->buckets = buckets;
    if (!((*db)->heads = calloc(buckets, sizeof(record *)))) {
        free(*db);
        return kvmeter_fail(error, KVMETER_FULL, "no memory for the buckets");
    }
    for (size_t at = 0; at < LOCKS; at++)
        pthread_rwlock_init(&(*db)->locks[at], NULL);
    return KVMETER_OK;
}

static void close_table(kvmeter_db *db)
{
    for (size_t at = 0; at < db->buckets; at++)
        for (record *next, *one = db->heads[at]; one; one = next) {
            next = one->next;
            free(one);
        }
    free(db->heads);
    free(db);
}

static uint32_t capabilities(kvmeter_db *db) { (void)db; return 0; }

static kvmeter_status open_session(kvmeter_db *db, kvmeter_session **session, kvmeter_error *error)
{
    (void)error;
    *session = (kvmeter_session *)db;
    return KVMETER_OK;
}

static void close_session(kvmeter_session *session) { (void)session; }

static kvmeter_status get(kvmeter_session *session, const void *key, size_t length,
                          kvmeter_on_value found, void *context, kvmeter_error *error)
{
    kvmeter_db *db = table_of(session);
    size_t bucket = bucket_of(db, key, length);
    (void)error;
    pthread_rwlock_rdlock(&db->locks[bucket % LOCKS]);
    record *one = *find(db, bucket, key, length);
    if (one)
        found(context, one->bytes + length, one->value_length);
    pthread_rwlock_unlock(&db->locks[bucket % LOCKS]);
    return one ? KVMETER_OK : KVMETER_NOT_FOUND;
}

/* Puts `one` in the place of the record of this key; without one the key is removed. */
static kvmeter_status replace(kvmeter_db *db, const void *key, size_t length, record *one)
{
    size_t bucket = bucket_of(db, key, length);
    pthread_rwlock_wrlock(&db->locks[bucket % LOCKS]);
    record **at = find(db, bucket, key, length), *old = *at, *rest = old ? old->next : NULL;
    if (one)
        one->next = rest;
    *at = one ? one : rest;
    pthread_rwlock_unlock(&db->locks[bucket % LOCKS]);
    free(old);
    return old || one ? KVMETER_OK : KVMETER_NOT_FOUND;
}

static kvmeter_status put(kvmeter_session *session, const void *key, size_t key_length,
                          const void *value, size_t value_length, kvmeter_error *error)
{
    record *one = malloc(sizeof *one + key_length + value_length);
    if (!one)
        return kvmeter_fail(error, KVMETER_FULL, "no memory for a record");
    one->key_length = key_length;
    one->value_length = value_length;
    memcpy(one->bytes, key, key_length);
    memcpy(one->bytes + key_length, value, value_length);
    return replace(table_of(session), key, key_length, one);
}

static kvmeter_status remove_key(kvmeter_session *session, const void *key, size_t length,
                                 kvmeter_error *error)
{
    (void)error;
    return replace(table_of(session), key, length, NULL);
}

static const kvmeter_option options[] = {
    {"buckets", "1048576", "chains of the table; best as many as records"},
};

static const kvmeter_store_table table = {
    .abi = KVMETER_STORE_ABI,
    .size = sizeof table,
    .name = "hash table",
    .version = "1.0",
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .open = open_table,
    .close = close_table,
    .capabilities = capabilities,
    .session_open = open_session,
    .session_close = close_session,
    .get = get,
    .put = put,
    .remove = remove_key,
};

const kvmeter_store_table *kvmeter_store(void) { return &table; }
