/*
 * kvmeter_store.h: the interface of a store that kvmeter measures as a plug-in.
 *
 * A plug-in is a shared library that exports one function, kvmeter_store(), which returns a table of
 * functions. `kvmeter bench 'plugin:./libmine.so?option=value'` loads it and calls them. It needs
 * nothing of kvmeter but this file. A complete one in one file is examples/plugins/hash_table.c;
 * docs/your-own-store.md goes with it.
 *
 * Build it with:  cc -std=c11 -O2 -fPIC -shared -I include -o libmine.so mine.c
 *
 * THREADS
 *     open, close, settle, statistics and options_in_force are called by one thread at a time, and
 *     never while the table's other functions open or close a database. statistics is called while
 *     sessions work in other threads. A session is used by one thread at a time: the one that opened
 *     it. Sessions of one database work in parallel.
 *
 * OWNERSHIP
 *     What kvmeter passes (keys, values, paths, settings) is valid until the function returns; copy
 *     what you keep. What you pass to a call-back is read before the call-back returns: lend your own
 *     memory, with no copy. Strings of the table live as long as the library, which is never unloaded.
 *
 * ERRORS
 *     A function that may fail returns a kvmeter_status and, unless it is KVMETER_OK or
 *     KVMETER_NOT_FOUND, writes a sentence with kvmeter_fail(). Any other number ends the run.
 *     A failed operation is counted and the run goes on; KVMETER_FULL, KVMETER_INVALID and a failed
 *     open end it.
 *
 * WHAT MAY BLOCK
 *     Everything may wait for a device or a lock: that is what is measured. A call that lasts longer
 *     than the option `limit` (60 s) ends the process with the name of the function. settle has its
 *     own limit. Call-backs neither block nor call back into the store.
 *
 * CRASHES
 *     kvmeter runs in a process of its own while it uses a plug-in, and says what ended it; runs that
 *     were finished are kept. `trusted=yes` in the URL leaves that process out.
 */
#ifndef KVMETER_STORE_H
#define KVMETER_STORE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. kvmeter refuses a library of another one. */
#define KVMETER_STORE_ABI 1u

/* What a function answers. */
typedef int32_t kvmeter_status;
#define KVMETER_OK 0
/* get and remove: the key does not exist. */
#define KVMETER_NOT_FOUND 1
/* The operation failed. */
#define KVMETER_FAILED 2
/* The device, or the space given to the store, is full. */
#define KVMETER_FULL 3
/* The request was wrong: an option's value, a key or value of a length that the store does not take. */
#define KVMETER_INVALID 4
/* settle: background work goes on after the limit. */
#define KVMETER_UNSETTLED 5

/* What a database can do; capabilities returns a sum of these. */
/* It scans in the order of keys' bytes. */
#define KVMETER_SCANS (1u << 0)
/* Acknowledged writes survive a kill of the process. */
#define KVMETER_DURABLE (1u << 1)
/* It may drop records; a read that finds nothing is a miss. */
#define KVMETER_EVICTS (1u << 2)

/* Bytes of an error's sentence, with its final NUL. */
#define KVMETER_MESSAGE 512

/* Where a failed function writes its sentence; kvmeter owns it. */
typedef struct kvmeter_error {
    char message[KVMETER_MESSAGE];
} kvmeter_error;

/* Writes a sentence and returns the status: `return kvmeter_fail(error, KVMETER_FAILED, "...")`. */
static inline kvmeter_status
kvmeter_fail(kvmeter_error *error, kvmeter_status status, const char *message)
{
    snprintf(error->message, sizeof error->message, "%s", message);
    return status;
}

/* An open database, and a thread's session with it: yours alone. */
typedef struct kvmeter_db kvmeter_db;
typedef struct kvmeter_session kvmeter_session;

/* An option that the URL takes, or a value that was given for it. */
typedef struct kvmeter_option {
    const char *name;
    /* In the table: the value in force if none is given. In open: the value that was given. */
    const char *value;
    /* In the table: what it is, in half a line. Otherwise NULL. */
    const char *what;
} kvmeter_option;

/* A key of a multi_get. */
typedef struct kvmeter_key {
    const void *bytes;
    size_t length;
} kvmeter_key;

/* Unit of a statistic. */
typedef enum kvmeter_unit {
    KVMETER_COUNT = 0,
    KVMETER_BYTES = 1,
    KVMETER_SECONDS = 2,
    /* A share or factor. */
    KVMETER_RATIO = 3
} kvmeter_unit;

/* Call-backs. `context` is what the function was given. */
typedef void (*kvmeter_on_value)(void *context, const void *value, size_t length);
/* `index` is the key's in the list that multi_get was given. */
typedef void (*kvmeter_on_found)(void *context, size_t index, const void *value, size_t length);
/* Returns non-zero while kvmeter wants more pairs. */
typedef int (*kvmeter_on_pair)(void *context, const void *key, size_t key_length,
                               const void *value, size_t value_length);
typedef void (*kvmeter_on_option)(void *context, const char *name, const char *value);
/* A name that ends in `.total` never falls while the database is open. */
typedef void (*kvmeter_on_statistic)(void *context, const char *name, double value,
                                     kvmeter_unit unit);

/*
 * The store. Members that are marked optional may be NULL, or 0. Later versions of this interface
 * append members; `size` says which ones a library has.
 */
typedef struct kvmeter_store_table {
    uint32_t abi;  /* KVMETER_STORE_ABI */
    uint32_t size; /* sizeof(kvmeter_store_table) */

    /* The engine's name and version, as they stand in results: "LevelDB", "1.23". */
    const char *name;
    const char *version;
    /* Non-zero if the database lives in a directory; else it is gone when it is closed. */
    uint32_t on_disk;
    uint32_t option_count;
    /* option_count options; optional. */
    const kvmeter_option *options;
    /* Bytes of the longest key and value; optional, then any length is taken. */
    size_t longest_key;
    size_t longest_value;

    /*
     * Opens the database in `directory`, an existing folder that is empty or holds what an earlier
     * open made; NULL unless on_disk. `settings` are the given options, each at most once and all of
     * them declared. KVMETER_INVALID: a value is wrong.
     */
    kvmeter_status (*open)(const char *directory, const kvmeter_option *settings, size_t count,
                           kvmeter_db **db, kvmeter_error *error);
    /* Closes it; all sessions are closed. What was acknowledged and is on disk must be there again
     * after the next open. */
    void (*close)(kvmeter_db *db);
    /* A sum of KVMETER_SCANS, KVMETER_DURABLE and KVMETER_EVICTS, with the options in force. */
    uint32_t (*capabilities)(kvmeter_db *db);
    /* Calls back with each option in force, derived defaults included; optional. */
    void (*options_in_force)(kvmeter_db *db, kvmeter_on_option each, void *context);

    kvmeter_status (*session_open)(kvmeter_db *db, kvmeter_session **session,
                                   kvmeter_error *error);
    void (*session_close)(kvmeter_session *session);

    /* Calls `found` once with the value, which is lent until the call-back returns, and returns
     * KVMETER_OK; or returns KVMETER_NOT_FOUND. */
    kvmeter_status (*get)(kvmeter_session *session, const void *key, size_t key_length,
                          kvmeter_on_value found, void *context, kvmeter_error *error);
    /* Sets the value of a key that may exist. */
    kvmeter_status (*put)(kvmeter_session *session, const void *key, size_t key_length,
                          const void *value, size_t value_length, kvmeter_error *error);
    /* The same for a key that is known to be new; optional. */
    kvmeter_status (*insert)(kvmeter_session *session, const void *key, size_t key_length,
                             const void *value, size_t value_length, kvmeter_error *error);
    /* Removes a key; KVMETER_OK or KVMETER_NOT_FOUND if it does not exist. */
    kvmeter_status (*remove)(kvmeter_session *session, const void *key, size_t key_length,
                             kvmeter_error *error);
    /* Calls `each` with pairs in the order of their keys' bytes, from the first key at or above
     * `from`, until it returns 0 or there are no more; at most `limit`. An empty `from` is the
     * beginning. Optional without KVMETER_SCANS. */
    kvmeter_status (*scan)(kvmeter_session *session, const void *from, size_t from_length,
                           size_t limit, kvmeter_on_pair each, void *context,
                           kvmeter_error *error);

    /* Writes out what is buffered and waits for background work, at most `limit_ms`; then
     * KVMETER_UNSETTLED. Optional: there is none. */
    kvmeter_status (*settle)(kvmeter_db *db, uint64_t limit_ms, kvmeter_error *error);
    /* Calls back with each of the store's own figures since it was opened; optional. */
    void (*statistics)(kvmeter_db *db, kvmeter_on_statistic each, void *context);

    /* Appended to version 1: a library that was built without what follows is taken as it is. */

    /* Looks up `count` keys together, 1,000 at most, of which some may be equal. Calls `found` once
     * for each key that exists, in any order, with a value that is lent until the call-back returns.
     * Optional: kvmeter then calls get for one key after the other. */
    kvmeter_status (*multi_get)(kvmeter_session *session, const kvmeter_key *keys, size_t count,
                                kvmeter_on_found found, void *context, kvmeter_error *error);
} kvmeter_store_table;

/* The one function that a plug-in exports; it returns a table that lives as long as the library. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const kvmeter_store_table *kvmeter_store(void);

#ifdef __cplusplus
}
#endif

#endif
