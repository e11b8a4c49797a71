/* Options of behaviour that have no effect: the log names them, and strict mode refuses them. */
#define _POSIX_C_SOURCE 200112L
#include "logged.h"

#define PARTITIONER "rocksdb_options_set_sst_partitioner_factory has no effect: "
#define COLLECTOR "rocksdb_options_add_compact_on_deletion_collector_factory has no effect: "
#define STYLE "rocksdb_options_set_compaction_style has no effect: "

static rocksdb_options_t* ignored_options(void) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_sst_partitioner_factory_t* factory = rocksdb_sst_partitioner_fixed_prefix_factory_create(4);
  rocksdb_options_set_sst_partitioner_factory(options, factory);
  rocksdb_sst_partitioner_factory_destroy(factory);
  rocksdb_options_add_compact_on_deletion_collector_factory(options, 100, 50);
  rocksdb_options_set_compaction_style(options, rocksdb_fifo_compaction);
  return options;
}

/* Each is named once, to a logger and in the file LOG. */
static void named(rocksdb_options_t* options, const char* directory) {
  char* error = NULL;
  char* path = path_in(directory, "named");
  rocksdb_close(open_new(options, path));
  char* log_path = path_in(path, "LOG");
  FILE* file = fopen(log_path, "r");
  CHECK(file != NULL);
  size_t len = fread(lines, 1, sizeof lines - 1, file);
  fclose(file);
  lines[len] = 0;
  CHECK(times(PARTITIONER) == 1 && times(COLLECTOR) == 1 && times(STYLE) == 1);
  free(log_path);

  rocksdb_options_t* plain = rocksdb_options_create();
  rocksdb_logger_t* logger = rocksdb_logger_create_callback_logger(0, told, NULL);
  rocksdb_options_set_info_log(plain, logger);
  forget_lines();
  rocksdb_t* db = rocksdb_open(plain, path, &error);
  CHECK_OK(error);
  CHECK(strlen(lines) > 0 && times("has no effect") == 0);
  rocksdb_column_family_handle_t* cf = rocksdb_create_column_family(db, options, "family", &error);
  CHECK_OK(error);
  CHECK(times("[family] " PARTITIONER) == 1 && times("[family] " STYLE) == 1);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_close(db);
  rocksdb_logger_destroy(logger);
  rocksdb_options_destroy(plain);
  free(path);
}

/* In strict mode such options open nothing and make no column family; others do. */
static void refused(rocksdb_options_t* options, const char* directory) {
  char* error = NULL;
  char* path = path_in(directory, "refused");
  CHECK(setenv("TERRANE_ROCKSDB_STRICT", "1", 1) == 0);
  CHECK(rocksdb_open(options, path, &error) == NULL);
  CHECK(error != NULL && strstr(error, "rocksdb_options_set_sst_partitioner_factory (") != NULL);
  CHECK(strstr(error, "rocksdb_options_set_compaction_style (") != NULL);
  CHECK_ERROR(error, REFUSED);

  rocksdb_options_t* plain = rocksdb_options_create();
  rocksdb_options_set_error_if_exists(plain, 1);
  rocksdb_t* db = open_new(plain, path);
  CHECK(rocksdb_create_column_family(db, options, "family", &error) == NULL);
  CHECK_ERROR(error, REFUSED);
  rocksdb_column_family_handle_t* cf = rocksdb_create_column_family(db, plain, "family", &error);
  CHECK_OK(error);
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_close(db);
  CHECK(setenv("TERRANE_ROCKSDB_STRICT", "0", 1) == 0);
  db = rocksdb_open_for_read_only(options, path, 0, &error);
  CHECK_OK(error);
  rocksdb_close(db);
  rocksdb_options_destroy(plain);
  free(path);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  rocksdb_options_t* options = ignored_options();
  named(options, arguments[1]);
  refused(options, arguments[1]);
  rocksdb_options_destroy(options);
  return 0;
}
