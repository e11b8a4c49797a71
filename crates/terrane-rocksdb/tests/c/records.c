/* Batches that are filled with handles of column families: they keep records, and the bytes are made when something asks. */
#include "check.h"

static rocksdb_readoptions_t* reading;
static rocksdb_writeoptions_t* writing;
static rocksdb_column_family_handle_t *first, *other;

static char told[256];

static void on_put(void* state, const char* k, size_t k_len, const char* v, size_t v_len) {
  size_t at = strlen(state);
  snprintf((char*)state + at, sizeof told - at, "put(%.*s,%.*s)", (int)k_len, k, (int)v_len, v);
}

static void on_delete(void* state, const char* k, size_t k_len) {
  size_t at = strlen(state);
  snprintf((char*)state + at, sizeof told - at, "delete(%.*s)", (int)k_len, k);
}

static void set(rocksdb_writebatch_t* batch, const char* key, const char* value) {
  rocksdb_writebatch_put_cf(batch, first, key, strlen(key), value, strlen(value));
}

static void check_bytes(rocksdb_writebatch_t* batch, const char* expected, size_t expected_len) {
  size_t len = 0;
  const char* data = rocksdb_writebatch_data(batch, &len);
  CHECK(len == expected_len && memcmp(data, expected, len) == 0);
}

static void write_all(rocksdb_t* db, rocksdb_writebatch_t* batch) {
  char* error = NULL;
  rocksdb_write(db, writing, batch, &error);
  CHECK_OK(error);
}

/* The bytes are those that they would be from the beginning, also of what comes behind. */
static void bytes(rocksdb_t* db) {
  char id = (char)rocksdb_column_family_handle_get_id(other);
  const char expected[] = {0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1, 1, 'k', 1, 'v', 4, id, 1, 'd', 8, id, 1, 's', 5, id, 1, 'p', 0};
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  set(batch, "k", "v");
  rocksdb_writebatch_delete_cf(batch, other, "d", 1);
  rocksdb_writebatch_singledelete_cf(batch, other, "s", 1);
  CHECK(rocksdb_writebatch_count(batch) == 3);
  rocksdb_writebatch_put_cf(batch, other, "p", 1, "", 0);
  check_bytes(batch, expected, sizeof expected);
  CHECK(rocksdb_writebatch_count(batch) == 4);
  write_all(db, batch);
  CHECK_GET(db, reading, "k", "v");
  CHECK_GET_CF(db, reading, other, "p", "");

  /* Behind the bytes, and in a batch that was cleared. */
  set(batch, "k", "behind");
  CHECK(rocksdb_writebatch_count(batch) == 5);
  write_all(db, batch);
  CHECK_GET(db, reading, "k", "behind");
  rocksdb_writebatch_clear(batch);
  CHECK(rocksdb_writebatch_count(batch) == 0);
  check_bytes(batch, (const char[12]){0}, 12);
  set(batch, "k", "anew");
  CHECK(rocksdb_writebatch_count(batch) == 1);
  write_all(db, batch);
  CHECK_GET(db, reading, "k", "anew");
  rocksdb_writebatch_destroy(batch);

  /* Written again and again, and cleared: records only. */
  batch = rocksdb_writebatch_create();
  set(batch, "k", "1");
  set(batch, "l", "1");
  write_all(db, batch);
  set(batch, "k", "2");
  write_all(db, batch);
  CHECK(rocksdb_writebatch_count(batch) == 3);
  CHECK_GET(db, reading, "k", "2");
  rocksdb_writebatch_clear(batch);
  CHECK(rocksdb_writebatch_count(batch) == 0);
  write_all(db, batch);
  rocksdb_writebatch_delete_cf(batch, first, "l", 1);
  write_all(db, batch);
  CHECK_GET(db, reading, "k", "2");
  CHECK_GET(db, reading, "l", NULL);
  rocksdb_writebatch_destroy(batch);
}

/* Whatever asks for the bytes finds the records in them, in their order. */
static void asked(rocksdb_t* db) {
  char* error = NULL;
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  set(batch, "a", "1");
  rocksdb_writebatch_delete_cf(batch, first, "b", 1);
  rocksdb_writebatch_iterate(batch, told, on_put, on_delete);
  CHECK(strcmp(told, "put(a,1)delete(b)") == 0);
  rocksdb_writebatch_destroy(batch);

  batch = rocksdb_writebatch_create();
  set(batch, "saved", "1");
  rocksdb_writebatch_rollback_to_save_point(batch, &error);
  CHECK_ERROR(error, "NotFound: ");
  rocksdb_writebatch_set_save_point(batch);
  set(batch, "back", "1");
  rocksdb_writebatch_rollback_to_save_point(batch, &error);
  CHECK_OK(error);
  CHECK(rocksdb_writebatch_count(batch) == 1);
  write_all(db, batch);
  CHECK_GET(db, reading, "saved", "1");
  CHECK_GET(db, reading, "back", NULL);
  rocksdb_writebatch_destroy(batch);

  batch = rocksdb_writebatch_create();
  set(batch, "m", "1");
  rocksdb_writebatch_put(batch, "m", 1, "2", 1);
  rocksdb_writebatch_put_log_data(batch, "log", 3);
  set(batch, "n", "1");
  rocksdb_writebatch_delete_range_cf(batch, first, "n", 1, "o", 1);
  set(batch, "o", "3");
  CHECK(rocksdb_writebatch_count(batch) == 5);
  write_all(db, batch);
  CHECK_GET(db, reading, "m", "2");
  CHECK_GET(db, reading, "n", NULL);
  CHECK_GET(db, reading, "o", "3");
  rocksdb_writebatch_clear(batch);
  set(batch, "m", "not written");
  rocksdb_writebatch_merge_cf(batch, first, "m", 1, "x", 1);
  rocksdb_write(db, writing, batch, &error);
  CHECK_ERROR(error, "Invalid argument: a merge in a column family");
  CHECK_GET(db, reading, "m", "2");
  rocksdb_writebatch_destroy(batch);
}

/* What is too long is refused when the batch is written, as a whole. */
static void limits(rocksdb_t* db) {
  char* error = NULL;
  size_t len = 70000;
  char* key = calloc(len, 1);
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  set(batch, "short", "1");
  rocksdb_writebatch_put_cf(batch, first, key, len, "1", 1);
  set(batch, "behind", "1");
  CHECK(rocksdb_writebatch_count(batch) == 3);
  rocksdb_write(db, writing, batch, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  CHECK_GET(db, reading, "short", NULL);
  rocksdb_writebatch_destroy(batch);
  free(key);

  /* A limit is of the bytes. */
  batch = rocksdb_writebatch_create_with_params(0, 20, 0, 0);
  set(batch, "a", "1");
  set(batch, "b", "too long for it");
  CHECK(rocksdb_writebatch_count(batch) == 1);
  rocksdb_writebatch_clear(batch);
  set(batch, "b", "too long for it");
  CHECK(rocksdb_writebatch_count(batch) == 0);
  rocksdb_writebatch_destroy(batch);
}

/* In another database column families are those of the same number. */
static void elsewhere(rocksdb_t* db, rocksdb_options_t* options, const char* path) {
  char* error = NULL;
  rocksdb_t* copy = open_new(options, path);
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  set(batch, "e", "default");
  rocksdb_writebatch_put_cf(batch, other, "e", 1, "other", 5);
  write_all(db, batch);
  rocksdb_writebatch_destroy(batch);

  batch = rocksdb_writebatch_create();
  set(batch, "e", "default");
  rocksdb_writebatch_put_cf(batch, other, "e", 1, "other", 5);
  rocksdb_write(copy, writing, batch, &error);
  CHECK_ERROR(error, "Invalid argument: Invalid column family specified in write batch");
  CHECK_GET(copy, reading, "e", NULL);
  rocksdb_writebatch_destroy(batch);

  batch = rocksdb_writebatch_create();
  set(batch, "e", "default");
  rocksdb_writebatch_put_cf(batch, other, "e", 1, "other", 5);
  rocksdb_writeoptions_t* skipping = rocksdb_writeoptions_create();
  rocksdb_writeoptions_set_ignore_missing_column_families(skipping, 1);
  rocksdb_write(copy, skipping, batch, &error);
  CHECK_OK(error);
  rocksdb_writeoptions_destroy(skipping);
  CHECK_GET(copy, reading, "e", "default");
  rocksdb_column_family_handle_t* same = rocksdb_create_column_family(copy, options, "same", &error);
  CHECK_OK(error);
  write_all(copy, batch);
  CHECK_GET_CF(copy, reading, same, "e", "other");
  rocksdb_writebatch_destroy(batch);

  /* Changes of two databases in one batch. */
  batch = rocksdb_writebatch_create();
  set(batch, "two", "1");
  rocksdb_writebatch_put_cf(batch, same, "two", 3, "2", 1);
  write_all(copy, batch);
  CHECK_GET(copy, reading, "two", "1");
  CHECK_GET_CF(copy, reading, same, "two", "2");
  write_all(db, batch);
  CHECK_GET_CF(db, reading, other, "two", "2");
  rocksdb_writebatch_destroy(batch);

  /* The database that the records are of is closed, and opened again for reading. */
  batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put_cf(batch, same, "closed", 6, "1", 1);
  rocksdb_column_family_handle_destroy(same);
  rocksdb_close(copy);
  write_all(db, batch);
  CHECK_GET_CF(db, reading, other, "closed", "1");
  rocksdb_writebatch_clear(batch);
  const char* names[2] = {"default", "same"};
  const rocksdb_options_t* both[2] = {options, options};
  rocksdb_column_family_handle_t* handles[2];
  copy = rocksdb_open_for_read_only_column_families(options, path, 2, names, both, handles, 0, &error);
  CHECK_OK(error);
  rocksdb_writebatch_put_cf(batch, handles[1], "k", 1, "v", 1);
  rocksdb_write(copy, writing, batch, &error);
  CHECK_ERROR(error, "Not implemented: Not supported operation in read only mode.");
  rocksdb_writebatch_destroy(batch);
  rocksdb_column_family_handle_destroy(handles[0]);
  rocksdb_column_family_handle_destroy(handles[1]);
  rocksdb_close(copy);
}

/* Values that expire have no records: their time begins at the write. */
static void expiring(rocksdb_options_t* options, const char* path) {
  char* error = NULL;
  rocksdb_t* db = rocksdb_open_with_ttl(options, path, 1000000, &error);
  CHECK_OK(error);
  rocksdb_column_family_handle_t* handle = rocksdb_get_default_column_family_handle(db);
  const char expected[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 'k', 1, 'v'};
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put_cf(batch, handle, "k", 1, "v", 1);
  check_bytes(batch, expected, sizeof expected);
  write_all(db, batch);
  CHECK_GET(db, reading, "k", "v");
  rocksdb_writebatch_destroy(batch);
  rocksdb_column_family_handle_destroy(handle);
  rocksdb_close(db);
}

/* Beside transactions, with a time to wait for locks and without one. */
static void beside(rocksdb_options_t* options, const char* path, int64_t timeout) {
  char* error = NULL;
  rocksdb_transactiondb_options_t* locks = rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_options_set_default_lock_timeout(locks, timeout);
  rocksdb_transactiondb_t* db = rocksdb_transactiondb_open(options, locks, path, &error);
  CHECK_OK(error);
  rocksdb_column_family_handle_t* handle = rocksdb_transactiondb_create_column_family(db, options, "beside", &error);
  CHECK_OK(error);
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_put_cf(batch, handle, "k", 1, "v", 1);
  rocksdb_writebatch_put_cf(batch, handle, "l", 1, "w", 1);
  rocksdb_transactiondb_write(db, writing, batch, &error);
  CHECK_OK(error);
  size_t len = 0;
  char* value = rocksdb_transactiondb_get_cf(db, reading, handle, "l", 1, &len, &error);
  CHECK_OK(error);
  check_value(value, len, "w", __FILE__, __LINE__);

  /* A transaction takes them. */
  rocksdb_writebatch_clear(batch);
  rocksdb_writebatch_put_cf(batch, handle, "t", 1, "x", 1);
  rocksdb_transaction_options_t* beginning = rocksdb_transaction_options_create();
  rocksdb_transaction_t* transaction = rocksdb_transaction_begin(db, writing, beginning, NULL);
  rocksdb_transaction_rebuild_from_writebatch(transaction, batch, &error);
  CHECK_OK(error);
  rocksdb_transaction_commit(transaction, &error);
  CHECK_OK(error);
  value = rocksdb_transactiondb_get_cf(db, reading, handle, "t", 1, &len, &error);
  CHECK_OK(error);
  check_value(value, len, "x", __FILE__, __LINE__);
  rocksdb_transaction_destroy(transaction);
  rocksdb_transaction_options_destroy(beginning);
  rocksdb_writebatch_destroy(batch);
  rocksdb_column_family_handle_destroy(handle);
  rocksdb_transactiondb_close(db);
  rocksdb_transactiondb_options_destroy(locks);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  char* error = NULL;
  char* paths[5];
  const char* names[5] = {"records", "elsewhere", "expiring", "beside", "waiting"};
  for (int at = 0; at < 5; at++) paths[at] = path_in(arguments[1], names[at]);
  rocksdb_options_t* options = rocksdb_options_create();
  reading = rocksdb_readoptions_create();
  writing = rocksdb_writeoptions_create();
  rocksdb_t* db = open_new(options, paths[0]);
  first = rocksdb_get_default_column_family_handle(db);
  other = rocksdb_create_column_family(db, options, "other", &error);
  CHECK_OK(error);
  bytes(db);
  asked(db);
  limits(db);
  elsewhere(db, options, paths[1]);
  rocksdb_column_family_handle_destroy(first);
  rocksdb_column_family_handle_destroy(other);
  rocksdb_close(db);
  expiring(options, paths[2]);
  beside(options, paths[3], 1000);
  beside(options, paths[4], -1);
  rocksdb_options_destroy(options);
  rocksdb_readoptions_destroy(reading);
  rocksdb_writeoptions_destroy(writing);
  for (int at = 0; at < 5; at++) free(paths[at]);
  return 0;
}
