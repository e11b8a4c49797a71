/* Two-phase commit, also over a reopening. */
#include "check.h"

static char* error;
static rocksdb_readoptions_t* reads;
static rocksdb_writeoptions_t* writes;
static rocksdb_transaction_options_t* plain;

static rocksdb_transactiondb_t* open(const char* path) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_transactiondb_options_t* settings =
      rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_options_set_transaction_lock_timeout(settings, 0);
  rocksdb_transactiondb_options_set_default_lock_timeout(settings, 0);
  rocksdb_transactiondb_t* db =
      rocksdb_transactiondb_open(options, settings, path, &error);
  CHECK_OK(error);
  rocksdb_transactiondb_options_destroy(settings);
  rocksdb_options_destroy(options);
  return db;
}

#define DB_GET(db, key, expected)                                              \
  do {                                                                         \
    size_t len_ = 0;                                                           \
    char* value_ = rocksdb_transactiondb_get((db), reads, (key), strlen(key),  \
                                             &len_, &error);                   \
    CHECK_OK(error);                                                           \
    check_value(value_, len_, (expected), __FILE__, __LINE__);                 \
  } while (0)

/* Begins one with a change, and names it. */
static rocksdb_transaction_t* named(rocksdb_transactiondb_t* db,
                                    const char* name, size_t name_len,
                                    const char* key) {
  rocksdb_transaction_t* txn =
      rocksdb_transaction_begin(db, writes, plain, NULL);
  rocksdb_transaction_put(txn, key, strlen(key), "v", 1, &error);
  CHECK_OK(error);
  rocksdb_transaction_set_name(txn, name, name_len, &error);
  CHECK_OK(error);
  return txn;
}

static void in_one_run(const char* path) {
  rocksdb_transactiondb_t* db = open(path);
  rocksdb_transaction_t* txn =
      rocksdb_transaction_begin(db, writes, plain, NULL);
  rocksdb_transaction_prepare(txn, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_transaction_set_name(txn, "", 0, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_transaction_put(txn, "a", 1, "v", 1, &error);
  rocksdb_transaction_set_name(txn, "one", 3, &error);
  CHECK_OK(error);
  rocksdb_transaction_set_name(txn, "two", 3, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_transaction_t* other =
      rocksdb_transaction_begin(db, writes, plain, NULL);
  rocksdb_transaction_set_name(other, "one", 3, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_transaction_prepare(txn, &error);
  CHECK_OK(error);
  rocksdb_transaction_prepare(txn, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  /* What is changed from now on is committed with it. */
  rocksdb_transaction_put(txn, "later", 5, "v", 1, &error);
  CHECK_OK(error);
  rocksdb_transaction_delete(txn, "gone", 4, &error);
  CHECK_OK(error);
  rocksdb_transactiondb_put(db, writes, "gone", 4, "v", 1, &error);
  CHECK_OK(error);
  size_t len = 0;
  char* value = rocksdb_transaction_get(txn, reads, "a", 1, &len, &error);
  check_value(value, len, "v", __FILE__, __LINE__);
  rocksdb_transactiondb_put(db, writes, "a", 1, "w", 1, &error);
  CHECK_ERROR(error, "Operation timed out: ");

  /* The same transaction by another handle. */
  size_t count = 0;
  rocksdb_transaction_t** all =
      rocksdb_transactiondb_get_prepared_transactions(db, &count);
  CHECK(count == 1);
  value = rocksdb_transaction_get_name(all[0], &len);
  check_value(value, len, "one", __FILE__, __LINE__);
  rocksdb_transaction_destroy(all[0]);
  rocksdb_free(all);
  rocksdb_transaction_commit(txn, &error);
  CHECK_OK(error);
  rocksdb_transaction_commit(txn, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  DB_GET(db, "a", "v");
  DB_GET(db, "later", "v");
  DB_GET(db, "gone", NULL);
  /* The name is free. */
  rocksdb_transaction_set_name(other, "one", 3, &error);
  CHECK_OK(error);
  rocksdb_transaction_put(other, "b", 1, "v", 1, &error);
  rocksdb_transaction_prepare(other, &error);
  CHECK_OK(error);
  rocksdb_transaction_rollback(other, &error);
  CHECK_OK(error);
  DB_GET(db, "b", NULL);
  rocksdb_transaction_rollback(other, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_transaction_destroy(txn);
  rocksdb_transaction_destroy(other);

  /* Some are committed only after they were prepared. */
  rocksdb_transaction_options_t* strict = rocksdb_transaction_options_create();
  rocksdb_transaction_options_set_skip_prepare(strict, 0);
  txn = rocksdb_transaction_begin(db, writes, strict, NULL);
  rocksdb_transaction_commit(txn, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_transaction_set_name(txn, "empty", 5, &error);
  rocksdb_transaction_prepare(txn, &error);
  CHECK_OK(error);
  rocksdb_transaction_commit(txn, &error);
  CHECK_OK(error);
  rocksdb_transaction_destroy(txn);
  rocksdb_transaction_options_destroy(strict);
  rocksdb_transactiondb_close(db);
}

/* What is prepared cannot be taken out of the batch. */
static void cut_batches(const char* path) {
  rocksdb_transactiondb_t* db = open(path);
  rocksdb_transaction_t* txn = named(db, "cut", 3, "c1");
  rocksdb_transaction_prepare(txn, &error);
  CHECK_OK(error);
  rocksdb_transaction_put(txn, "c2", 2, "v", 1, &error);
  CHECK_OK(error);
  rocksdb_writebatch_wi_t* batch = rocksdb_transaction_get_writebatch_wi(txn);
  rocksdb_writebatch_wi_clear(batch);
  rocksdb_free(batch);
  rocksdb_transaction_put(txn, "a key that is longer than what was", 34, "v", 1, &error);
  CHECK_OK(error);
  rocksdb_transaction_commit(txn, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  DB_GET(db, "c1", NULL);
  rocksdb_transaction_rollback(txn, &error);
  CHECK_OK(error);
  rocksdb_transaction_destroy(txn);

  /* Longest names that can be prepared. */
  char name[256];
  memset(name, 'n', sizeof name);
  txn = rocksdb_transaction_begin(db, writes, plain, NULL);
  rocksdb_transaction_set_name(txn, name, 256, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  name[0] = (char)0xff;
  rocksdb_transaction_set_name(txn, name, 126, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_transaction_set_name(txn, name, 125, &error);
  CHECK_OK(error);
  rocksdb_transaction_prepare(txn, &error);
  CHECK_OK(error);
  rocksdb_transaction_rollback(txn, &error);
  CHECK_OK(error);
  rocksdb_transaction_destroy(txn);

  /* A range that is deleted by the batch is not put around a key of another. */
  rocksdb_transaction_t* one = named(db, "holds", 5, "r2");
  txn = rocksdb_transaction_begin(db, writes, plain, NULL);
  rocksdb_transaction_set_name(txn, "deletes", 7, &error);
  CHECK_OK(error);
  batch = rocksdb_transaction_get_writebatch_wi(txn);
  rocksdb_writebatch_wi_delete_range(batch, "r1", 2, "r3", 2);
  rocksdb_free(batch);
  rocksdb_transaction_prepare(one, &error);
  CHECK_OK(error);
  rocksdb_transaction_prepare(txn, &error);
  CHECK_ERROR(error, "Operation timed out: ");
  rocksdb_transaction_destroy(txn);
  rocksdb_transaction_rollback(one, &error);
  CHECK_OK(error);
  rocksdb_transaction_destroy(one);
  rocksdb_transactiondb_close(db);
}

static void over_a_reopening(const char* path) {
  rocksdb_transactiondb_t* db = open(path);
  /* Names are bytes. */
  const char bytes[] = {(char)0xff, 0, 'n'};
  rocksdb_transaction_t* one = named(db, "one", 3, "p1");
  rocksdb_transaction_t* two = named(db, bytes, 3, "p2");
  rocksdb_transaction_delete(two, "a", 1, &error);
  rocksdb_transaction_t* three = named(db, "three", 5, "p3");
  rocksdb_transaction_prepare(one, &error);
  CHECK_OK(error);
  rocksdb_transaction_prepare(two, &error);
  CHECK_OK(error);
  rocksdb_transaction_destroy(one);
  rocksdb_transaction_destroy(two);
  rocksdb_transaction_destroy(three);
  rocksdb_transactiondb_close(db);

  db = open(path);
  DB_GET(db, "p1", NULL);
  rocksdb_transactiondb_put(db, writes, "p1", 2, "w", 1, &error);
  CHECK_ERROR(error, "Operation timed out: ");
  rocksdb_transactiondb_put(db, writes, "p3", 2, "w", 1, &error);
  CHECK_OK(error);
  size_t count = 0;
  rocksdb_transaction_t** all =
      rocksdb_transactiondb_get_prepared_transactions(db, &count);
  CHECK(count == 2);
  int found = 0;
  for (size_t at = 0; at < count; at++) {
    size_t len = 0;
    char* name = rocksdb_transaction_get_name(all[at], &len);
    CHECK(len == 3);
    if (memcmp(name, "one", 3) == 0) {
      rocksdb_transaction_rollback(all[at], &error);
      found += 1;
    } else {
      CHECK(memcmp(name, bytes, 3) == 0);
      /* Its changes are there. */
      char* value =
          rocksdb_transaction_get(all[at], reads, "p2", 2, &len, &error);
      check_value(value, len, "v", __FILE__, __LINE__);
      rocksdb_writebatch_wi_t* batch =
          rocksdb_transaction_get_writebatch_wi(all[at]);
      CHECK(rocksdb_writebatch_wi_count(batch) == 2);
      rocksdb_free(batch);
      rocksdb_transaction_commit(all[at], &error);
      found += 10;
    }
    CHECK_OK(error);
    rocksdb_free(name);
    rocksdb_transaction_destroy(all[at]);
  }
  rocksdb_free(all);
  CHECK(found == 11);
  DB_GET(db, "p1", NULL);
  DB_GET(db, "p2", "v");
  DB_GET(db, "a", NULL);
  all = rocksdb_transactiondb_get_prepared_transactions(db, &count);
  CHECK(count == 0);
  rocksdb_free(all);
  rocksdb_transactiondb_close(db);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  reads = rocksdb_readoptions_create();
  writes = rocksdb_writeoptions_create();
  plain = rocksdb_transaction_options_create();
  char* path = path_in(argv[1], "db");
  in_one_run(path);
  cut_batches(path);
  over_a_reopening(path);
  free(path);
  rocksdb_transaction_options_destroy(plain);
  rocksdb_readoptions_destroy(reads);
  rocksdb_writeoptions_destroy(writes);
  return 0;
}
