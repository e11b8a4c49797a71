/* A database that the library itself made: `k` in the default column family, an operand in `counters`, one of an operator that C
 * programs have not in `joined`, and two prepared transactions whose names this interface would not give. */
#include "check.h"

/* They are found under their names, and ended. */
static void prepared(rocksdb_options_t* options, const char* path, const char* const* names,
                     const rocksdb_options_t* const* of) {
  char* error = NULL;
  rocksdb_column_family_handle_t* handles[3];
  rocksdb_transactiondb_options_t* settings = rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_t* db = rocksdb_transactiondb_open_column_families(options, settings, path, 3, names, of, handles, &error);
  CHECK_OK(error);
  size_t count = 0, len = 0;
  rocksdb_transaction_t** found = rocksdb_transactiondb_get_prepared_transactions(db, &count);
  CHECK(count == 2);
  for (size_t at = 0; at < count; at++) {
    char* name = rocksdb_transaction_get_name(found[at], &len);
    if (len == 6 && memcmp(name, "hex:AB", 6) == 0) {
      rocksdb_transaction_commit(found[at], &error);
    } else {
      CHECK(len == 8 && memcmp(name, "hex:6162", 8) == 0);
      rocksdb_transaction_rollback(found[at], &error);
    }
    CHECK_OK(error);
    rocksdb_free(name);
    rocksdb_transaction_destroy(found[at]);
  }
  rocksdb_free(found);
  rocksdb_column_family_handle_destroy(handles[0]);
  rocksdb_column_family_handle_destroy(handles[1]);
  rocksdb_column_family_handle_destroy(handles[2]);
  rocksdb_transactiondb_close(db);
  rocksdb_transactiondb_options_destroy(settings);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  char* error = NULL;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  rocksdb_writeoptions_t* writing = rocksdb_writeoptions_create();
  const char* names[3] = {"default", "counters", "joined"};
  const rocksdb_options_t* of[3] = {options, options, options};
  rocksdb_column_family_handle_t* handles[3];
  rocksdb_t* db = rocksdb_open_column_families(options, arguments[1], 3, names, of, handles, &error);
  CHECK_OK(error);
  CHECK_GET(db, reading, "k", "from the library");
  put(db, "k", "from C");
  size_t len = 0;
  char* value = rocksdb_get_cf(db, reading, handles[1], "n", 1, &len, &error);
  CHECK_OK(error);
  CHECK(value != NULL);
  rocksdb_free(value);
  value = rocksdb_get_cf(db, reading, handles[2], "k", 1, &len, &error);
  CHECK_OK(error);
  check_value(value, len, "from the library", __FILE__, __LINE__);
  CHECK(rocksdb_get_cf(db, reading, handles[2], "n", 1, &len, &error) == NULL);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_put_cf(db, writing, handles[1], "also", 4, "x", 1, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_put_cf(db, writing, handles[1], "also", 4, "\1\0\0\0\0\0\0\0", 8, &error);
  CHECK_OK(error);
  rocksdb_column_family_handle_destroy(handles[0]);
  rocksdb_column_family_handle_destroy(handles[1]);
  rocksdb_column_family_handle_destroy(handles[2]);
  rocksdb_close(db);
  prepared(options, arguments[1], names, of);
  rocksdb_options_destroy(options);
  rocksdb_readoptions_destroy(reading);
  rocksdb_writeoptions_destroy(writing);
  return 0;
}
