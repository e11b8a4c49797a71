/* Transactions that lock: beside each other, beside plain writes, from begin to end. */
#include "check.h"

static char* error;
static rocksdb_readoptions_t* reads;
static rocksdb_writeoptions_t* writes;
static rocksdb_transaction_options_t* plain;

static void txn_put(rocksdb_transaction_t* txn, const char* key,
                    const char* value) {
  rocksdb_transaction_put(txn, key, strlen(key), value, strlen(value), &error);
}

static void db_put(rocksdb_transactiondb_t* db, const char* key,
                   const char* value) {
  rocksdb_transactiondb_put(db, writes, key, strlen(key), value, strlen(value),
                            &error);
}

#define TXN_GET(txn, options, key, expected)                                   \
  do {                                                                         \
    size_t len_ = 0;                                                           \
    char* value_ = rocksdb_transaction_get((txn), (options), (key),            \
                                           strlen(key), &len_, &error);        \
    CHECK_OK(error);                                                           \
    check_value(value_, len_, (expected), __FILE__, __LINE__);                 \
  } while (0)

#define DB_GET(db, options, key, expected)                                     \
  do {                                                                         \
    size_t len_ = 0;                                                           \
    char* value_ = rocksdb_transactiondb_get((db), (options), (key),           \
                                             strlen(key), &len_, &error);      \
    CHECK_OK(error);                                                           \
    check_value(value_, len_, (expected), __FILE__, __LINE__);                 \
  } while (0)

/* A database whose transactions, and writes beside them, do not wait. */
static rocksdb_transactiondb_t* open_without_wait(const char* path) {
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

static rocksdb_transaction_t* begin(rocksdb_transactiondb_t* db) {
  rocksdb_transaction_t* txn =
      rocksdb_transaction_begin(db, writes, plain, NULL);
  CHECK(txn != NULL);
  return txn;
}

static void locks(rocksdb_transactiondb_t* db) {
  db_put(db, "k", "old");
  CHECK_OK(error);
  rocksdb_transaction_t* one = begin(db);
  rocksdb_transaction_t* other = begin(db);
  txn_put(one, "k", "one");
  CHECK_OK(error);
  TXN_GET(one, reads, "k", "one");
  TXN_GET(other, reads, "k", "old");
  DB_GET(db, reads, "k", "old");
  txn_put(other, "k", "other");
  CHECK_ERROR(error, "Operation timed out: ");
  rocksdb_transaction_delete(other, "k", 1, &error);
  CHECK_ERROR(error, "Operation timed out: ");
  db_put(db, "k", "plain");
  CHECK_ERROR(error, "Operation timed out: ");
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "k", 1, "batch", 5);
  rocksdb_transactiondb_write(db, writes, batch, &error);
  CHECK_ERROR(error, "Operation timed out: ");
  rocksdb_writebatch_clear(batch);
  rocksdb_writebatch_delete_range(batch, "j", 1, "l", 1);
  rocksdb_transactiondb_write(db, writes, batch, &error);
  CHECK_ERROR(error, "Operation timed out: ");
  rocksdb_writebatch_destroy(batch);
  /* Where none begins, the old handle and its locks stay. */
  CHECK(rocksdb_transaction_begin(NULL, writes, plain, one) == NULL);
  db_put(db, "k", "plain");
  CHECK_ERROR(error, "Operation timed out: ");
  rocksdb_transaction_commit(one, &error);
  CHECK_OK(error);
  DB_GET(db, reads, "k", "one");
  /* Its locks are free, and it is over. */
  txn_put(other, "k", "other");
  CHECK_OK(error);
  txn_put(one, "k", "again");
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_transaction_commit(one, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_transaction_rollback(one, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  /* Rolled back it runs on, with nothing. */
  rocksdb_transaction_rollback(other, &error);
  CHECK_OK(error);
  db_put(db, "k", "plain");
  CHECK_OK(error);
  TXN_GET(other, reads, "k", "plain");
  txn_put(other, "k", "more");
  CHECK_OK(error);
  rocksdb_transaction_commit(other, &error);
  CHECK_OK(error);
  DB_GET(db, reads, "k", "more");

  /* The same handle again. */
  one = rocksdb_transaction_begin(db, writes, plain, one);
  txn_put(one, "k", "reused");
  CHECK_OK(error);
  rocksdb_transaction_destroy(one);
  DB_GET(db, reads, "k", "more");
  db_put(db, "k", "free");
  CHECK_OK(error);
  rocksdb_transaction_destroy(other);
}

static void for_update(rocksdb_transactiondb_t* db) {
  db_put(db, "u", "1");
  CHECK_OK(error);
  rocksdb_transaction_t* one = begin(db);
  rocksdb_transaction_t* other = begin(db);
  size_t len = 0;
  char* value = rocksdb_transaction_get_for_update(one, reads, "u", 1, &len, 0,
                                                   &error);
  CHECK_OK(error);
  check_value(value, len, "1", __FILE__, __LINE__);
  /* Shared beside shared, but not beside a write. */
  rocksdb_pinnableslice_t* pinned = rocksdb_transaction_get_pinned_for_update(
      other, reads, "u", 1, 0, &error);
  CHECK_OK(error);
  rocksdb_pinnableslice_destroy(pinned);
  txn_put(other, "u", "2");
  CHECK_ERROR(error, "Operation timed out: ");
  rocksdb_transaction_rollback(one, &error);
  CHECK_OK(error);
  txn_put(other, "u", "2");
  CHECK_OK(error);
  CHECK(rocksdb_transaction_get_for_update(one, reads, "u", 1, &len, 1,
                                           &error) == NULL);
  CHECK_ERROR(error, "Operation timed out: ");
  rocksdb_transaction_commit(other, &error);
  CHECK_OK(error);

  /* Several at once. */
  const char* keys[] = {"u", "absent"};
  const size_t lens[] = {1, 6};
  char* values[2];
  size_t value_lens[2];
  char* errors[2];
  rocksdb_transaction_multi_get_for_update(one, reads, 2, keys, lens, values,
                                           value_lens, errors);
  CHECK(errors[0] == NULL && errors[1] == NULL);
  check_value(values[0], value_lens[0], "2", __FILE__, __LINE__);
  CHECK(values[1] == NULL);
  db_put(db, "absent", "1");
  CHECK_ERROR(error, "Operation timed out: ");
  other = rocksdb_transaction_begin(db, writes, plain, other);
  rocksdb_transaction_multi_get_for_update(other, reads, 2, keys, lens, values,
                                           value_lens, errors);
  CHECK(values[0] == NULL && values[1] == NULL);
  CHECK_ERROR(errors[0], "Operation timed out: ");
  CHECK_ERROR(errors[1], "Operation timed out: ");
  rocksdb_transaction_multi_get(other, reads, 2, keys, lens, values, value_lens,
                                errors);
  CHECK(errors[0] == NULL && errors[1] == NULL);
  check_value(values[0], value_lens[0], "2", __FILE__, __LINE__);
  rocksdb_transaction_commit(one, &error);
  CHECK_OK(error);
  rocksdb_transaction_destroy(one);
  rocksdb_transaction_destroy(other);
}

static void snapshots(rocksdb_transactiondb_t* db) {
  rocksdb_transaction_options_t* options = rocksdb_transaction_options_create();
  rocksdb_transaction_options_set_set_snapshot(options, 1);
  db_put(db, "s", "1");
  CHECK_OK(error);
  rocksdb_transaction_t* txn =
      rocksdb_transaction_begin(db, writes, options, NULL);
  db_put(db, "s", "2");
  CHECK_OK(error);
  /* Reads see what is there, unless they are told otherwise. */
  TXN_GET(txn, reads, "s", "2");
  const rocksdb_snapshot_t* snapshot = rocksdb_transaction_get_snapshot(txn);
  rocksdb_readoptions_t* then = rocksdb_readoptions_create();
  rocksdb_readoptions_set_snapshot(then, snapshot);
  TXN_GET(txn, then, "s", "1");
  DB_GET(db, then, "s", "1");
  CHECK(rocksdb_snapshot_get_sequence_number(snapshot) > 0);
  rocksdb_free((void*)snapshot);
  TXN_GET(txn, then, "s", "1");
  /* What was changed since may not be written or read for update. */
  txn_put(txn, "s", "3");
  CHECK_ERROR(error, "Resource busy: ");
  size_t len = 0;
  CHECK(rocksdb_transaction_get_for_update(txn, reads, "s", 1, &len, 1,
                                           &error) == NULL);
  CHECK_ERROR(error, "Resource busy: ");
  /* Who was refused has no lock. */
  db_put(db, "s", "4");
  CHECK_OK(error);
  txn_put(txn, "fresh", "1");
  CHECK_OK(error);
  rocksdb_transaction_commit(txn, &error);
  CHECK_OK(error);
  rocksdb_readoptions_destroy(then);
  rocksdb_transaction_destroy(txn);

  /* Without a snapshot there is none. */
  txn = begin(db);
  db_put(db, "s", "5");
  CHECK_OK(error);
  txn_put(txn, "s", "6");
  CHECK_OK(error);
  snapshot = rocksdb_transaction_get_snapshot(txn);
  CHECK(snapshot != NULL);
  CHECK(rocksdb_snapshot_get_sequence_number(snapshot) == 0);
  rocksdb_free((void*)snapshot);
  rocksdb_transaction_destroy(txn);
  rocksdb_transaction_options_destroy(options);

  /* Those of the database. */
  db_put(db, "s", "7");
  snapshot = rocksdb_transactiondb_create_snapshot(db);
  db_put(db, "s", "8");
  then = rocksdb_readoptions_create();
  rocksdb_readoptions_set_snapshot(then, snapshot);
  DB_GET(db, then, "s", "7");
  rocksdb_readoptions_destroy(then);
  rocksdb_transactiondb_release_snapshot(db, snapshot);
}

static void save_points(rocksdb_transactiondb_t* db) {
  rocksdb_transaction_t* txn = begin(db);
  txn_put(txn, "p1", "1");
  rocksdb_transaction_set_savepoint(txn);
  txn_put(txn, "p1", "2");
  txn_put(txn, "p2", "2");
  CHECK_OK(error);
  db_put(db, "p2", "plain");
  CHECK_ERROR(error, "Operation timed out: ");
  rocksdb_transaction_rollback_to_savepoint(txn, &error);
  CHECK_OK(error);
  TXN_GET(txn, reads, "p1", "1");
  TXN_GET(txn, reads, "p2", NULL);
  /* The lock that was taken since is free, the other one is not. */
  db_put(db, "p2", "plain");
  CHECK_OK(error);
  db_put(db, "p1", "plain");
  CHECK_ERROR(error, "Operation timed out: ");
  rocksdb_transaction_rollback_to_savepoint(txn, &error);
  CHECK_ERROR(error, "NotFound: ");
  rocksdb_transaction_commit(txn, &error);
  CHECK_OK(error);
  DB_GET(db, reads, "p1", "1");
  DB_GET(db, reads, "p2", "plain");
  rocksdb_transaction_destroy(txn);
}

static void iterators(rocksdb_transactiondb_t* db) {
  db_put(db, "i1", "base");
  db_put(db, "i3", "base");
  rocksdb_readoptions_t* bounded = rocksdb_readoptions_create();
  rocksdb_readoptions_set_iterate_lower_bound(bounded, "i", 1);
  rocksdb_readoptions_set_iterate_upper_bound(bounded, "j", 1);
  rocksdb_transaction_t* txn = begin(db);
  txn_put(txn, "i2", "own");
  txn_put(txn, "k", "outside");
  rocksdb_transaction_delete(txn, "i3", 2, &error);
  CHECK_OK(error);
  rocksdb_iterator_t* iter = rocksdb_transaction_create_iterator(txn, bounded);
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_seek_to_first(iter);
  CHECK_ROW(iter, "i1", "base");
  rocksdb_iter_next(iter);
  CHECK_ROW(iter, "i2", "own");
  /* What is written behind the last key of the batch shows when the iterator is placed again. */
  rocksdb_iter_next(iter);
  CHECK(!rocksdb_iter_valid(iter));
  txn_put(txn, "i4", "own");
  rocksdb_iter_seek_to_last(iter);
  CHECK_ROW(iter, "i4", "own");
  rocksdb_iter_prev(iter);
  CHECK_ROW(iter, "i2", "own");
  rocksdb_iter_destroy(iter);
  iter = rocksdb_transactiondb_create_iterator(db, bounded);
  rocksdb_iter_seek_to_last(iter);
  CHECK_ROW(iter, "i3", "base");
  rocksdb_iter_destroy(iter);
  rocksdb_transaction_commit(txn, &error);
  CHECK_OK(error);
  rocksdb_transaction_destroy(txn);
  rocksdb_readoptions_destroy(bounded);
}

static void batches(rocksdb_transactiondb_t* db) {
  rocksdb_transaction_t* txn = begin(db);
  txn_put(txn, "w1", "1");
  rocksdb_transaction_put_log_data(txn, "log", 3);
  rocksdb_writebatch_wi_t* own = rocksdb_transaction_get_writebatch_wi(txn);
  CHECK(rocksdb_writebatch_wi_count(own) == 1);
  /* Written there it is not locked. */
  rocksdb_writebatch_wi_put(own, "w2", 2, "2", 1);
  TXN_GET(txn, reads, "w2", "2");
  size_t len = 0;
  const char* data = rocksdb_writebatch_wi_data(own, &len);
  rocksdb_writebatch_t* copy = rocksdb_writebatch_create_from(data, len);
  rocksdb_free(own);
  rocksdb_transaction_rollback(txn, &error);
  CHECK_OK(error);
  TXN_GET(txn, reads, "w1", NULL);

  rocksdb_transaction_rebuild_from_writebatch(txn, copy, &error);
  CHECK_OK(error);
  TXN_GET(txn, reads, "w2", "2");
  db_put(db, "w2", "plain");
  CHECK_ERROR(error, "Operation timed out: ");
  rocksdb_writebatch_wi_t* batch = rocksdb_writebatch_wi_create(0, 1);
  rocksdb_writebatch_wi_put(batch, "w3", 2, "3", 1);
  rocksdb_writebatch_wi_delete(batch, "w1", 2);
  rocksdb_transaction_rebuild_from_writebatch_wi(txn, batch, &error);
  CHECK_OK(error);
  rocksdb_writebatch_wi_delete_range(batch, "a", 1, "b", 1);
  rocksdb_transaction_rebuild_from_writebatch_wi(txn, batch, &error);
  CHECK_ERROR(error, "Not implemented: ");
  rocksdb_transaction_commit(txn, &error);
  CHECK_OK(error);
  DB_GET(db, reads, "w1", NULL);
  DB_GET(db, reads, "w2", "2");
  DB_GET(db, reads, "w3", "3");
  rocksdb_writebatch_destroy(copy);
  rocksdb_writebatch_wi_destroy(batch);
  rocksdb_transaction_destroy(txn);
}

static void limits(const char* directory) {
  char* path = path_in(directory, "limits");
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_transactiondb_options_t* settings =
      rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_options_set_max_num_locks(settings, 2);
  rocksdb_transactiondb_t* db =
      rocksdb_transactiondb_open(options, settings, path, &error);
  CHECK_OK(error);
  rocksdb_transaction_t* one = begin(db);
  rocksdb_transaction_t* other = begin(db);
  txn_put(one, "a", "1");
  txn_put(one, "a", "2");
  txn_put(other, "b", "1");
  CHECK_OK(error);
  txn_put(other, "c", "1");
  CHECK_ERROR(error, "Resource busy: ");
  rocksdb_transaction_commit(one, &error);
  CHECK_OK(error);
  txn_put(other, "c", "1");
  CHECK_OK(error);
  rocksdb_transaction_destroy(one);
  rocksdb_transaction_destroy(other);

  rocksdb_transaction_options_t* small = rocksdb_transaction_options_create();
  rocksdb_transaction_options_set_max_write_batch_size(small, 40);
  one = rocksdb_transaction_begin(db, writes, small, NULL);
  txn_put(one, "a", "1");
  CHECK_OK(error);
  txn_put(one, "b", "a value that is longer than the batch may be");
  CHECK_ERROR(error, "Operation aborted: ");
  rocksdb_transaction_commit(one, &error);
  CHECK_OK(error);
  rocksdb_transaction_destroy(one);
  rocksdb_transaction_options_destroy(small);

  /* What has expired is not committed, and others take its locks. */
  rocksdb_transaction_options_t* brief = rocksdb_transaction_options_create();
  rocksdb_transaction_options_set_expiration(brief, 0);
  one = rocksdb_transaction_begin(db, writes, brief, NULL);
  txn_put(one, "a", "late");
  CHECK_OK(error);
  other = begin(db);
  txn_put(other, "a", "2");
  CHECK_OK(error);
  rocksdb_transaction_commit(one, &error);
  CHECK_ERROR(error, "Operation expired: ");
  txn_put(one, "a", "late");
  CHECK_ERROR(error, "Operation expired: ");
  rocksdb_transaction_destroy(one);
  rocksdb_transaction_commit(other, &error);
  CHECK_OK(error);
  rocksdb_transaction_destroy(other);
  DB_GET(db, reads, "a", "2");
  rocksdb_transaction_options_destroy(brief);

  /* Without control two of them may change one key. */
  rocksdb_transaction_options_t* wild = rocksdb_transaction_options_create();
  rocksdb_transaction_options_set_skip_concurrency_control(wild, 1);
  one = rocksdb_transaction_begin(db, writes, wild, NULL);
  other = rocksdb_transaction_begin(db, writes, wild, NULL);
  txn_put(one, "a", "one");
  txn_put(other, "a", "other");
  CHECK_OK(error);
  rocksdb_transaction_commit(other, &error);
  CHECK_OK(error);
  rocksdb_transaction_commit(one, &error);
  CHECK_OK(error);
  DB_GET(db, reads, "a", "one");
  rocksdb_transaction_destroy(one);
  rocksdb_transaction_destroy(other);
  rocksdb_transaction_options_destroy(wild);
  rocksdb_transactiondb_close(db);
  rocksdb_transactiondb_options_destroy(settings);
  rocksdb_options_destroy(options);
  free(path);
}

static void families(const char* directory) {
  char* path = path_in(directory, "families");
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_create_missing_column_families(options, 1);
  rocksdb_options_set_uint64add_merge_operator(options);
  rocksdb_transactiondb_options_t* settings =
      rocksdb_transactiondb_options_create();
  const char* names[] = {"default", "other"};
  const rocksdb_options_t* each[] = {options, options};
  rocksdb_column_family_handle_t* handles[2];
  rocksdb_transactiondb_t* db = rocksdb_transactiondb_open_column_families(
      options, settings, path, 2, names, each, handles, &error);
  CHECK_OK(error);
  rocksdb_column_family_handle_t* third =
      rocksdb_transactiondb_create_column_family(db, options, "third", &error);
  CHECK_OK(error);
  rocksdb_transactiondb_put_cf(db, writes, third, "t", 1, "3", 1, &error);
  rocksdb_transactiondb_put_cf(db, writes, handles[1], "gone", 4, "3", 1,
                               &error);
  rocksdb_transactiondb_delete_cf(db, writes, handles[1], "gone", 4, &error);
  const char two[8] = {2}, three[8] = {3};
  rocksdb_transactiondb_merge_cf(db, writes, handles[1], "n", 1, two, 8,
                                 &error);
  rocksdb_transactiondb_merge(db, writes, "n", 1, two, 8, &error);
  CHECK_OK(error);

  rocksdb_transaction_t* txn = begin(db);
  rocksdb_transaction_merge_cf(txn, handles[1], "n", 1, three, 8, &error);
  rocksdb_transaction_merge(txn, "n", 1, two, 8, &error);
  rocksdb_transaction_put_cf(txn, third, "o", 1, "own", 3, &error);
  rocksdb_transaction_delete_cf(txn, third, "t", 1, &error);
  CHECK_OK(error);
  size_t len = 0;
  char* value = rocksdb_transaction_get_cf(txn, reads, handles[1], "n", 1, &len,
                                           &error);
  CHECK(value != NULL && len == 8 && value[0] == 5);
  rocksdb_free(value);
  rocksdb_pinnableslice_t* pinned =
      rocksdb_transaction_get_pinned_cf(txn, reads, third, "o", 1, &error);
  CHECK(rocksdb_pinnableslice_value(pinned, &len)[0] == 'o' && len == 3);
  rocksdb_pinnableslice_destroy(pinned);
  pinned = rocksdb_transaction_get_pinned_for_update_cf(txn, reads, third, "t",
                                                        1, 1, &error);
  CHECK_OK(error);
  CHECK(pinned == NULL);
  const rocksdb_column_family_handle_t* of[] = {handles[1], third};
  const char* keys[] = {"n", "o"};
  const size_t lens[] = {1, 1};
  char* values[2];
  size_t value_lens[2];
  char* errors[2];
  rocksdb_transaction_multi_get_cf(txn, reads, of, 2, keys, lens, values,
                                   value_lens, errors);
  CHECK(errors[0] == NULL && errors[1] == NULL);
  CHECK(value_lens[0] == 8 && values[0][0] == 5);
  rocksdb_free(values[0]);
  check_value(values[1], value_lens[1], "own", __FILE__, __LINE__);
  rocksdb_transactiondb_multi_get_cf(db, reads, of, 2, keys, lens, values,
                                     value_lens, errors);
  CHECK(errors[0] == NULL && errors[1] == NULL && values[1] == NULL);
  CHECK(value_lens[0] == 8 && values[0][0] == 2);
  rocksdb_free(values[0]);
  rocksdb_iterator_t* iter =
      rocksdb_transaction_create_iterator_cf(txn, reads, third);
  rocksdb_iter_seek_to_first(iter);
  CHECK_ROW(iter, "o", "own");
  rocksdb_iter_next(iter);
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_destroy(iter);
  rocksdb_transaction_commit(txn, &error);
  CHECK_OK(error);
  rocksdb_transaction_destroy(txn);

  value = rocksdb_transactiondb_get_cf(db, reads, handles[1], "n", 1, &len,
                                       &error);
  CHECK(value != NULL && len == 8 && value[0] == 5);
  rocksdb_free(value);
  pinned = rocksdb_transactiondb_get_pinned_cf(db, reads, third, "o", 1, &error);
  CHECK(pinned != NULL);
  rocksdb_pinnableslice_destroy(pinned);
  iter = rocksdb_transactiondb_create_iterator_cf(db, reads, third);
  rocksdb_iter_seek(iter, "t", 1);
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_destroy(iter);

  /* Beside transactions. */
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flushwaloptions_t* flush_wal = rocksdb_flushwaloptions_create();
  rocksdb_flushwaloptions_set_sync(flush_wal, 1);
  rocksdb_transactiondb_flush_wal(db, 1, &error);
  CHECK_OK(error);
  rocksdb_transactiondb_flush_wal_with_options(db, flush_wal, &error);
  CHECK_OK(error);
  rocksdb_transactiondb_flush(db, flush, &error);
  CHECK_OK(error);
  rocksdb_transactiondb_flush_cf(db, flush, third, &error);
  CHECK_OK(error);
  rocksdb_transactiondb_flush_cfs(db, flush, handles, 2, &error);
  CHECK_OK(error);
  rocksdb_flushwaloptions_destroy(flush_wal);
  rocksdb_flushoptions_destroy(flush);
  uint64_t number = 0;
  CHECK(rocksdb_transactiondb_property_int(db, "rocksdb.estimate-num-keys",
                                           &number) == 0);
  value = rocksdb_transactiondb_property_value(db, "rocksdb.stats");
  CHECK(value != NULL);
  rocksdb_free(value);
  CHECK(rocksdb_transactiondb_property_value(db, "no such") == NULL);

  char* copy = path_in(directory, "copy");
  rocksdb_checkpoint_t* checkpoint =
      rocksdb_transactiondb_checkpoint_object_create(db, &error);
  CHECK_OK(error);
  rocksdb_checkpoint_create(checkpoint, copy, 0, &error);
  CHECK_OK(error);
  rocksdb_checkpoint_object_destroy(checkpoint);
  free(copy);

  /* The database as a plain one, by a handle of its own or by the same one. */
  rocksdb_t* base = rocksdb_transactiondb_get_base_db(db);
  put(base, "base", "1");
  CHECK_GET_CF(base, reads, third, "o", "own");
  rocksdb_transactiondb_close_base_db(base);
  DB_GET(db, reads, "base", "1");
  rocksdb_drop_column_family((rocksdb_t*)db, third, &error);
  CHECK_OK(error);
  rocksdb_column_family_handle_destroy(third);
  rocksdb_column_family_handle_destroy(handles[0]);
  rocksdb_column_family_handle_destroy(handles[1]);
  rocksdb_transactiondb_close(db);
  rocksdb_transactiondb_options_destroy(settings);
  rocksdb_options_destroy(options);
  free(path);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  reads = rocksdb_readoptions_create();
  writes = rocksdb_writeoptions_create();
  plain = rocksdb_transaction_options_create();
  char* path = path_in(argv[1], "db");
  rocksdb_transactiondb_t* db = open_without_wait(path);
  locks(db);
  for_update(db);
  snapshots(db);
  save_points(db);
  iterators(db);
  batches(db);
  rocksdb_transactiondb_close(db);
  free(path);
  limits(argv[1]);
  families(argv[1]);
  rocksdb_transaction_options_destroy(plain);
  rocksdb_readoptions_destroy(reads);
  rocksdb_writeoptions_destroy(writes);
  return 0;
}
