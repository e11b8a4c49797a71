/* Open, close, options at open, column families listed, destroyed, repaired; errors in RocksDB's words. */
#include "check.h"

#include <sys/stat.h>

static void refusals(const char* directory) {
  char* error = NULL;
  char* path = path_in(directory, "missing");
  rocksdb_options_t* options = rocksdb_options_create();
  CHECK(rocksdb_open(options, path, &error) == NULL);
  CHECK_ERROR(error, "Invalid argument: ");
  CHECK(rocksdb_open_for_read_only(options, path, 0, &error) == NULL);
  CHECK_ERROR(error, "IO error: No such file or directory");
  rocksdb_list_column_families(options, path, NULL, &error);
  CHECK_ERROR(error, "IO error: ");

  rocksdb_t* db = open_new(options, path);
  CHECK(rocksdb_open(options, path, &error) == NULL);
  CHECK(error != NULL && strstr(error, "/LOCK:") != NULL);
  CHECK_ERROR(error, "IO error: ");
  rocksdb_destroy_db(options, path, &error);
  CHECK_ERROR(error, "IO error: ");
  rocksdb_close(db);

  rocksdb_options_set_error_if_exists(options, 1);
  CHECK(rocksdb_open(options, path, &error) == NULL);
  CHECK(error != NULL && strstr(error, "error_if_exists is true") != NULL);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_options_set_error_if_exists(options, 0);

  rocksdb_options_set_compression(options, 77);
  CHECK(rocksdb_open(options, path, &error) == NULL);
  CHECK_ERROR(error, "Invalid argument: Compression type 77 is not known");
  /* A codec that is not built in is a wish for one of its class; the getter has what was set. */
  const int levels[] = {rocksdb_no_compression, rocksdb_zlib_compression, rocksdb_bz2_compression};
  rocksdb_options_set_compression_per_level(options, levels, 3);
  for (int codec = rocksdb_snappy_compression; codec <= rocksdb_xpress_compression; codec++) {
    rocksdb_options_set_compression(options, codec);
    rocksdb_options_set_bottommost_compression(options, codec);
    CHECK(rocksdb_options_get_compression(options) == codec);
    CHECK(rocksdb_options_get_bottommost_compression(options) == codec);
    rocksdb_close(open_new(options, path));
  }
  rocksdb_options_set_compression_per_level(options, NULL, 0);
  rocksdb_options_set_bottommost_compression(options, 255);
  rocksdb_options_set_compression(options, rocksdb_no_compression);

  CHECK(rocksdb_open(NULL, path, &error) == NULL);
  CHECK_ERROR(error, "Invalid argument: ");
  /* An error takes the place of one that was not looked at. */
  rocksdb_open(NULL, path, &error);
  rocksdb_open(NULL, path, &error);
  CHECK_ERROR(error, "Invalid argument: ");

  rocksdb_destroy_db(options, path, &error);
  CHECK_OK(error);
  rocksdb_destroy_db(options, path, &error);
  CHECK_OK(error);
  rocksdb_options_set_create_if_missing(options, 0);
  CHECK(rocksdb_open(options, path, &error) == NULL);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_options_destroy(options);
  free(path);
}

static void readers(const char* directory) {
  char* error = NULL;
  char* path = path_in(directory, "readers");
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  rocksdb_writeoptions_t* writing = rocksdb_writeoptions_create();
  rocksdb_t* db = open_new(options, path);
  put(db, "k", "v");

  /* Beside a writer, and alone. */
  for (int round = 0; round < 2; round++) {
    rocksdb_t* reader = rocksdb_open_for_read_only(options, path, 0, &error);
    CHECK_OK(error);
    CHECK_GET(reader, reading, "k", "v");
    CHECK_GET(reader, reading, "absent", NULL);
    rocksdb_put(reader, writing, "k", 1, "x", 1, &error);
    CHECK_ERROR(error, "Not implemented: Not supported operation in read only mode.");
    rocksdb_close(reader);
    if (round == 0) rocksdb_close(db);
  }
  rocksdb_repair_db(options, path, &error);
  CHECK_OK(error);
  db = open_new(options, path);
  CHECK_GET(db, reading, "k", "v");
  rocksdb_close(db);
  rocksdb_writeoptions_destroy(writing);
  rocksdb_readoptions_destroy(reading);
  rocksdb_options_destroy(options);
  free(path);
}

/* A reader keeps no writer from opening, and goes on showing what there was. */
static void writer_beside_reader(const char* directory) {
  char* error = NULL;
  char* path = path_in(directory, "shared");
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  rocksdb_t* db = open_new(options, path);
  put(db, "k", "v");
  rocksdb_close(db);
  rocksdb_t* reader = rocksdb_open_for_read_only(options, path, 0, &error);
  CHECK_OK(error);
  db = open_new(options, path);
  put(db, "k", "later");
  CHECK_GET(db, reading, "k", "later");
  CHECK_GET(reader, reading, "k", "v");
  size_t count = 0;
  char** names = rocksdb_list_column_families(options, path, &count, &error);
  CHECK_OK(error);
  CHECK(count == 1);
  rocksdb_list_column_families_destroy(names, count);
  rocksdb_close(reader);
  rocksdb_close(db);
  rocksdb_readoptions_destroy(reading);
  rocksdb_options_destroy(options);
  free(path);
}

/* Is a file there? */
static int has_file(const char* path) {
  FILE* file = fopen(path, "r");
  if (file != NULL) fclose(file);
  return file != NULL;
}

/* A database is made beside files of others, which nothing touches. */
static void beside_others(const char* directory) {
  char* error = NULL;
  char *path = path_in(directory, "beside"), *alien = path_in(path, "alien");
  char *inner = path_in(path, "paths"), *orphan = path_in(path, "MANIFEST-000007");
  CHECK(mkdir(path, 0700) == 0 && mkdir(inner, 0700) == 0);
  fclose(fopen(alien, "w"));
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  rocksdb_t* db = open_new(options, path);
  put(db, "k", "v");
  rocksdb_close(db);
  rocksdb_repair_db(options, path, &error);
  CHECK_OK(error);
  CHECK(has_file(alien) && has_file(inner));
  db = open_new(options, path);
  CHECK_GET(db, reading, "k", "v");
  rocksdb_close(db);
  rocksdb_destroy_db(options, path, &error);
  CHECK_OK(error);
  CHECK(has_file(alien) && has_file(inner));
  /* What a database left that lost its CURRENT is not overwritten. */
  fclose(fopen(orphan, "w"));
  rocksdb_options_set_create_if_missing(options, 1);
  CHECK(rocksdb_open(options, path, &error) == NULL);
  CHECK_ERROR(error, "Corruption: ");
  rocksdb_readoptions_destroy(reading);
  rocksdb_options_destroy(options);
  free(orphan);
  free(inner);
  free(alien);
  free(path);
}

static void no_destructor(void* state) { (void)state; }

static const char* no_name(void* state) {
  (void)state;
  return "none";
}

static void in_memory(void) {
  char* error = NULL;
  rocksdb_env_t* env = rocksdb_create_mem_env();
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  rocksdb_options_set_env(options, env);
  rocksdb_t* db = open_new(options, "/in-memory");
  put(db, "k", "v");
  rocksdb_close(db);
  db = rocksdb_open(options, "/in-memory", &error);
  CHECK_OK(error);
  CHECK_GET(db, reading, "k", "v");
  rocksdb_options_set_use_direct_reads(options, 1);
  rocksdb_walfilter_t* filter = rocksdb_walfilter_create(NULL, no_destructor, NULL, NULL, no_name);
  for (int filtered = 0; filtered < 2; filtered++) {
    CHECK(rocksdb_open(options, "/direct", &error) == NULL);
    CHECK_ERROR(error, "Invalid argument: use_direct_reads");
    rocksdb_options_set_wal_filter(options, filter);
  }
  rocksdb_options_destroy(options);
  rocksdb_walfilter_destroy(filter);
  rocksdb_env_destroy(env);
  CHECK_GET(db, reading, "k", "v");
  rocksdb_close(db);
  rocksdb_readoptions_destroy(reading);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  refusals(arguments[1]);
  readers(arguments[1]);
  writer_beside_reader(arguments[1]);
  beside_others(arguments[1]);
  in_memory();
  return 0;
}
