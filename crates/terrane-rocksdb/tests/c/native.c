/* A database that the library itself made: `k` in the default column family, and an operand in `counters`. */
#include "check.h"

int main(int count, char** arguments) {
  CHECK(count == 2);
  char* error = NULL;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  rocksdb_writeoptions_t* writing = rocksdb_writeoptions_create();
  const char* names[2] = {"default", "counters"};
  const rocksdb_options_t* of[2] = {options, options};
  rocksdb_column_family_handle_t* handles[2];
  rocksdb_t* db = rocksdb_open_column_families(options, arguments[1], 2, names, of, handles, &error);
  CHECK_OK(error);
  CHECK_GET(db, reading, "k", "from the library");
  put(db, "k", "from C");
  size_t len = 0;
  char* value = rocksdb_get_cf(db, reading, handles[1], "n", 1, &len, &error);
  CHECK_OK(error);
  CHECK(value != NULL);
  rocksdb_free(value);
  rocksdb_put_cf(db, writing, handles[1], "also", 4, "x", 1, &error);
  CHECK_OK(error);
  rocksdb_column_family_handle_destroy(handles[0]);
  rocksdb_column_family_handle_destroy(handles[1]);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  rocksdb_readoptions_destroy(reading);
  rocksdb_writeoptions_destroy(writing);
  return 0;
}
