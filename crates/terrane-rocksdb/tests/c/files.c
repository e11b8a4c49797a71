/* Files of sorted rows: written, taken in, refused. */
#include "check.h"

static rocksdb_readoptions_t* reading;

static void put_row(rocksdb_sstfilewriter_t* writer, const char* key, const char* value) {
  char* error = NULL;
  rocksdb_sstfilewriter_put(writer, key, strlen(key), value, strlen(value), &error);
  CHECK_OK(error);
}

/* A file with operands goes into the default column family, and is folded with what is there. */
static void operands(const char* root) {
  char* error = NULL;
  char *path = path_in(root, "counters"), *file = path_in(root, "operands");
  const char* files[1] = {file};
  const char one[8] = {1, 0, 0, 0, 0, 0, 0, 0};
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_uint64add_merge_operator(options);
  rocksdb_t* db = open_new(options, path);
  rocksdb_writeoptions_t* writing = rocksdb_writeoptions_create();
  rocksdb_merge(db, writing, "n", 1, one, 8, &error);
  CHECK_OK(error);
  rocksdb_writeoptions_destroy(writing);
  rocksdb_envoptions_t* env = rocksdb_envoptions_create();
  rocksdb_ingestexternalfileoptions_t* how = rocksdb_ingestexternalfileoptions_create();
  rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(env, options);
  rocksdb_sstfilewriter_open(writer, file, &error);
  CHECK_OK(error);
  rocksdb_sstfilewriter_merge(writer, "n", 1, one, 8, &error);
  CHECK_OK(error);
  rocksdb_sstfilewriter_finish(writer, &error);
  CHECK_OK(error);
  rocksdb_column_family_handle_t* cf = rocksdb_create_column_family(db, options, "other", &error);
  CHECK_OK(error);
  rocksdb_ingest_external_file_cf(db, cf, files, 1, how, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_ingest_external_file(db, files, 1, how, &error);
  CHECK_OK(error);
  size_t len = 0;
  rocksdb_readoptions_t* options_of_reads = rocksdb_readoptions_create();
  char* sum = rocksdb_get(db, options_of_reads, "n", 1, &len, &error);
  CHECK_OK(error);
  CHECK(len == 8 && sum[0] == 2 && sum[1] == 0);
  rocksdb_free(sum);
  /* One of the same options without operands goes anywhere. */
  rocksdb_sstfilewriter_open(writer, file, &error);
  CHECK_OK(error);
  rocksdb_sstfilewriter_put(writer, "k", 1, "v", 1, &error);
  CHECK_OK(error);
  rocksdb_sstfilewriter_finish(writer, &error);
  CHECK_OK(error);
  rocksdb_ingest_external_file_cf(db, cf, files, 1, how, &error);
  CHECK_OK(error);
  CHECK_GET_CF(db, options_of_reads, cf, "k", "v");
  rocksdb_readoptions_destroy(options_of_reads);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_sstfilewriter_destroy(writer);
  rocksdb_ingestexternalfileoptions_destroy(how);
  rocksdb_envoptions_destroy(env);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  free(path);
  free(file);
}

static void delete_range(rocksdb_sstfilewriter_t* writer, const char* start, const char* end, char** error) {
  rocksdb_sstfilewriter_delete_range(writer, start, strlen(start), end, strlen(end), error);
}

/* Range deletes of a file, in any order: they hide what the database has, and no row of the file. */
static void ranges(const char* root) {
  char* error = NULL;
  char *path = path_in(root, "ranges"), *file = path_in(root, "ranges.sst");
  const char* files[1] = {file};
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_t* db = open_new(options, path);
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  put(db, "a", "old");
  put(db, "b", "old");
  put(db, "c", "old");
  put(db, "d", "old");
  put(db, "z", "old");
  rocksdb_envoptions_t* env = rocksdb_envoptions_create();
  rocksdb_ingestexternalfileoptions_t* how = rocksdb_ingestexternalfileoptions_create();
  rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(env, options);
  delete_range(writer, "a", "b", &error);
  CHECK_ERROR(error, "Invalid argument: File is not opened");
  rocksdb_sstfilewriter_open(writer, file, &error);
  CHECK_OK(error);
  delete_range(writer, "y", "zz", &error);
  CHECK_OK(error);
  put_row(writer, "b", "new");
  delete_range(writer, "b", "d", &error);
  CHECK_OK(error);
  delete_range(writer, "d", "b", &error);
  CHECK_ERROR(error, "Invalid argument: end key comes before start key");
  delete_range(writer, "d", "d", &error);
  CHECK_OK(error);
  rocksdb_sstfilewriter_finish(writer, &error);
  CHECK_OK(error);
  rocksdb_ingest_external_file(db, files, 1, how, &error);
  CHECK_OK(error);
  CHECK_GET(db, reading, "a", "old");
  CHECK_GET(db, reading, "b", "new");
  CHECK_GET(db, reading, "c", NULL);
  CHECK_GET(db, reading, "d", "old");
  CHECK_GET(db, reading, "z", NULL);
  /* An empty range is no row: the file has nothing. */
  rocksdb_sstfilewriter_open(writer, file, &error);
  CHECK_OK(error);
  delete_range(writer, "d", "d", &error);
  CHECK_OK(error);
  rocksdb_sstfilewriter_finish(writer, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_sstfilewriter_destroy(writer);
  rocksdb_ingestexternalfileoptions_destroy(how);
  rocksdb_envoptions_destroy(env);
  rocksdb_readoptions_destroy(reading);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  free(path);
  free(file);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  char* error = NULL;
  char* path = path_in(arguments[1], "ingest");
  char* file = path_in(arguments[1], "rows.sst");
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_envoptions_t* env = rocksdb_envoptions_create();
  reading = rocksdb_readoptions_create();
  rocksdb_t* db = open_new(options, path);
  put(db, "a", "old");
  put(db, "c", "old");
  put(db, "x", "old");

  rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(env, options);
  rocksdb_sstfilewriter_put(writer, "a", 1, "1", 1, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_sstfilewriter_open(writer, file, &error);
  CHECK_OK(error);
  put_row(writer, "a", "new");
  put_row(writer, "b", "new");
  rocksdb_sstfilewriter_put(writer, "a", 1, "again", 5, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_sstfilewriter_delete(writer, "c", 1, &error);
  CHECK_OK(error);
  rocksdb_sstfilewriter_finish(writer, &error);
  CHECK_OK(error);
  uint64_t size = 0;
  rocksdb_sstfilewriter_file_size(writer, &size);
  CHECK(size > 0);
  rocksdb_sstfilewriter_finish(writer, &error);
  CHECK_ERROR(error, "Invalid argument: ");

  const char* files[1] = {file};
  rocksdb_ingestexternalfileoptions_t* how = rocksdb_ingestexternalfileoptions_create();
  rocksdb_ingestexternalfileoptions_set_ingest_behind(how, 1);
  rocksdb_ingest_external_file(db, files, 1, how, &error);
  CHECK_ERROR(error, "Not implemented: ");
  rocksdb_ingestexternalfileoptions_set_ingest_behind(how, 0);
  rocksdb_ingest_external_file(db, files, 1, how, &error);
  CHECK_OK(error);
  CHECK_GET(db, reading, "a", "new");
  CHECK_GET(db, reading, "b", "new");
  CHECK_GET(db, reading, "c", NULL);
  CHECK_GET(db, reading, "x", "old");

  /* The file is there still; another one takes its place, and is moved in. */
  rocksdb_column_family_handle_t* cf = rocksdb_create_column_family(db, options, "other", &error);
  CHECK_OK(error);
  rocksdb_sstfilewriter_open(writer, file, &error);
  CHECK_OK(error);
  put_row(writer, "m", "moved");
  rocksdb_sstfilewriter_finish(writer, &error);
  CHECK_OK(error);
  rocksdb_ingestexternalfileoptions_set_move_files(how, 1);
  rocksdb_ingest_external_file_cf(db, cf, files, 1, how, &error);
  CHECK_OK(error);
  CHECK_GET_CF(db, reading, cf, "m", "moved");
  rocksdb_ingest_external_file_cf(db, cf, files, 1, how, &error);
  CHECK(error != NULL);
  rocksdb_free(error);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_sstfilewriter_destroy(writer);
  rocksdb_ingestexternalfileoptions_destroy(how);
  rocksdb_close(db);
  rocksdb_envoptions_destroy(env);
  rocksdb_options_destroy(options);
  rocksdb_readoptions_destroy(reading);
  operands(arguments[1]);
  ranges(arguments[1]);
  free(path);
  free(file);
  return 0;
}
