/* Transactions that are checked at their commit. */
#include "check.h"

static char* error;
static rocksdb_readoptions_t* reads;
static rocksdb_writeoptions_t* writes;
static rocksdb_optimistictransaction_options_t* plain;

static void txn_put(rocksdb_transaction_t* txn, const char* key,
                    const char* value) {
  rocksdb_transaction_put(txn, key, strlen(key), value, strlen(value), &error);
  CHECK_OK(error);
}

static rocksdb_transaction_t* begin(rocksdb_optimistictransactiondb_t* db) {
  rocksdb_transaction_t* txn =
      rocksdb_optimistictransaction_begin(db, writes, plain, NULL);
  CHECK(txn != NULL);
  return txn;
}

static void conflicts(rocksdb_optimistictransactiondb_t* db, rocksdb_t* base) {
  rocksdb_transaction_t* one = begin(db);
  rocksdb_transaction_t* other = begin(db);
  txn_put(one, "k", "one");
  txn_put(other, "k", "other");
  rocksdb_transaction_commit(one, &error);
  CHECK_OK(error);
  rocksdb_transaction_commit(other, &error);
  CHECK_ERROR(error, "Resource busy: ");
  CHECK_GET(base, reads, "k", "one");
  /* Who was refused still has its changes, and may begin anew. */
  size_t len = 0;
  char* value = rocksdb_transaction_get(other, reads, "k", 1, &len, &error);
  check_value(value, len, "other", __FILE__, __LINE__);
  rocksdb_transaction_rollback(other, &error);
  CHECK_OK(error);
  txn_put(other, "k", "again");
  rocksdb_transaction_commit(other, &error);
  CHECK_OK(error);
  CHECK_GET(base, reads, "k", "again");
  /* After its commit it runs on. */
  txn_put(other, "k", "more");
  rocksdb_transaction_commit(other, &error);
  CHECK_OK(error);
  CHECK_GET(base, reads, "k", "more");

  /* A write before the first one of the transaction is none of its conflicts, one after it is. */
  put(base, "k", "plain");
  one = rocksdb_optimistictransaction_begin(db, writes, plain, one);
  put(base, "k", "before");
  txn_put(one, "k", "one");
  rocksdb_transaction_commit(one, &error);
  CHECK_OK(error);
  one = rocksdb_optimistictransaction_begin(db, writes, plain, one);
  txn_put(one, "k", "one");
  put(base, "k", "after");
  rocksdb_transaction_commit(one, &error);
  CHECK_ERROR(error, "Resource busy: ");

  /* With a snapshot every write after it is. */
  rocksdb_optimistictransaction_options_t* options =
      rocksdb_optimistictransaction_options_create();
  rocksdb_optimistictransaction_options_set_set_snapshot(options, 1);
  one = rocksdb_optimistictransaction_begin(db, writes, options, one);
  put(base, "k", "since");
  txn_put(one, "k", "one");
  rocksdb_transaction_commit(one, &error);
  CHECK_ERROR(error, "Resource busy: ");
  rocksdb_optimistictransaction_options_destroy(options);

  /* What was read for update counts, too, also where nothing is written. */
  one = rocksdb_optimistictransaction_begin(db, writes, plain, one);
  value = rocksdb_transaction_get_for_update(one, reads, "k", 1, &len, 1,
                                             &error);
  CHECK_OK(error);
  check_value(value, len, "since", __FILE__, __LINE__);
  put(base, "k", "changed");
  rocksdb_transaction_commit(one, &error);
  CHECK_ERROR(error, "Resource busy: ");
  /* But not what was rolled back. */
  one = rocksdb_optimistictransaction_begin(db, writes, plain, one);
  rocksdb_transaction_set_savepoint(one);
  txn_put(one, "k", "one");
  rocksdb_transaction_rollback_to_savepoint(one, &error);
  CHECK_OK(error);
  put(base, "k", "changed again");
  txn_put(one, "l", "one");
  rocksdb_transaction_commit(one, &error);
  CHECK_OK(error);

  rocksdb_transaction_set_name(one, "n", 1, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_transaction_prepare(one, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_transaction_destroy(one);
  rocksdb_transaction_destroy(other);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  reads = rocksdb_readoptions_create();
  writes = rocksdb_writeoptions_create();
  plain = rocksdb_optimistictransaction_options_create();
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  char* path = path_in(argv[1], "db");
  rocksdb_optimistictransactiondb_t* db =
      rocksdb_optimistictransactiondb_open(options, path, &error);
  CHECK_OK(error);
  rocksdb_t* base = rocksdb_optimistictransactiondb_get_base_db(db);
  conflicts(db, base);

  rocksdb_column_family_handle_t* other =
      rocksdb_create_column_family(base, options, "other", &error);
  CHECK_OK(error);
  rocksdb_transaction_t* txn = begin(db);
  rocksdb_transaction_put_cf(txn, other, "k", 1, "v", 1, &error);
  CHECK_OK(error);
  rocksdb_put_cf(base, writes, other, "k", 1, "w", 1, &error);
  CHECK_OK(error);
  rocksdb_transaction_commit(txn, &error);
  CHECK_ERROR(error, "Resource busy: ");
  rocksdb_transaction_destroy(txn);
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put(batch, "batch", 5, "1", 1);
  rocksdb_optimistictransactiondb_write(db, writes, batch, &error);
  CHECK_OK(error);
  rocksdb_writebatch_destroy(batch);
  uint64_t number = 0;
  CHECK(rocksdb_optimistictransactiondb_property_int(
            db, "rocksdb.estimate-num-keys", &number) == 0);
  char* stats = rocksdb_optimistictransactiondb_property_value(
      db, "rocksdb.stats");
  CHECK(stats != NULL);
  rocksdb_free(stats);
  char* copy = path_in(argv[1], "copy");
  rocksdb_checkpoint_t* checkpoint =
      rocksdb_optimistictransactiondb_checkpoint_object_create(db, &error);
  CHECK_OK(error);
  rocksdb_checkpoint_create(checkpoint, copy, 0, &error);
  CHECK_OK(error);
  rocksdb_checkpoint_object_destroy(checkpoint);
  rocksdb_column_family_handle_destroy(other);
  rocksdb_optimistictransactiondb_close_base_db(base);
  rocksdb_optimistictransactiondb_close(db);

  /* With options of such databases, and families. */
  rocksdb_optimistictransactiondb_options_t* settings =
      rocksdb_optimistictransactiondb_options_create();
  rocksdb_optimistictransactiondb_lock_buckets_t* buckets =
      rocksdb_optimistictransactiondb_lock_buckets_create(16, 1);
  CHECK(rocksdb_optimistictransactiondb_lock_buckets_approximate_memory_usage(
            buckets) > 0);
  rocksdb_optimistictransactiondb_options_set_shared_lock_buckets(settings,
                                                                  buckets);
  const char* names[] = {"default", "other"};
  const rocksdb_options_t* each[] = {options, options};
  rocksdb_column_family_handle_t* handles[2];
  db = rocksdb_optimistictransactiondb_open_column_families_with_otxn_db_options(
      options, settings, path, 2, names, each, handles, &error);
  CHECK_OK(error);
  rocksdb_column_family_handle_destroy(handles[0]);
  rocksdb_column_family_handle_destroy(handles[1]);
  rocksdb_optimistictransactiondb_close(db);
  db = rocksdb_optimistictransactiondb_open_column_families(
      options, path, 2, names, each, handles, &error);
  CHECK_OK(error);
  txn = begin(db);
  size_t len = 0;
  char* value = rocksdb_transaction_get_cf(txn, reads, handles[1], "k", 1, &len,
                                           &error);
  check_value(value, len, "w", __FILE__, __LINE__);
  rocksdb_transaction_destroy(txn);
  rocksdb_column_family_handle_destroy(handles[0]);
  rocksdb_column_family_handle_destroy(handles[1]);
  rocksdb_optimistictransactiondb_close(db);
  db = rocksdb_optimistictransactiondb_open_with_otxn_db_options(
      options, settings, copy, &error);
  CHECK(db == NULL);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_optimistictransactiondb_lock_buckets_destroy(buckets);
  rocksdb_optimistictransactiondb_options_destroy(settings);
  rocksdb_options_destroy(options);
  rocksdb_optimistictransaction_options_destroy(plain);
  rocksdb_readoptions_destroy(reads);
  rocksdb_writeoptions_destroy(writes);
  free(copy);
  free(path);
  return 0;
}
