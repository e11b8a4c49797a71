/* Leaves a database behind: rows in `default`, which has no merge operator, and a sum in `sums`, which has one. */
#include "check.h"

int main(int count, char** arguments) {
  CHECK(count == 2);
  char* error = NULL;
  char path[512];
  snprintf(path, sizeof path, "%s/left", arguments[1]);
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_t* db = rocksdb_open(options, path, &error);
  CHECK_OK(error);
  put(db, "k", "from C");
  rocksdb_options_t* adding = rocksdb_options_create();
  rocksdb_options_set_uint64add_merge_operator(adding);
  rocksdb_column_family_handle_t* sums = rocksdb_create_column_family(db, adding, "sums", &error);
  CHECK_OK(error);
  rocksdb_writeoptions_t* writing = rocksdb_writeoptions_create();
  rocksdb_put_cf(db, writing, sums, "plain", 5, "value", 5, &error);
  CHECK_OK(error);
  rocksdb_merge_cf(db, writing, sums, "n", 1, "\2\0\0\0\0\0\0\0", 8, &error);
  CHECK_OK(error);
  rocksdb_merge_cf(db, writing, sums, "n", 1, "\3\0\0\0\0\0\0\0", 8, &error);
  CHECK_OK(error);
  rocksdb_flushoptions_t* flushing = rocksdb_flushoptions_create();
  rocksdb_flush(db, flushing, &error);
  CHECK_OK(error);
  rocksdb_flushoptions_destroy(flushing);
  rocksdb_writeoptions_destroy(writing);
  rocksdb_column_family_handle_destroy(sums);
  rocksdb_close(db);
  rocksdb_options_destroy(adding);
  rocksdb_options_destroy(options);
  return 0;
}
