/* Options of calls that have no effect: each is named once in the log, at its first use, and strict mode refuses the call. */
#define _POSIX_C_SOURCE 200112L
#include "logged.h"

#define NO_EFFECT " has no effect: "

static unsigned char leave_out(void* state, const char* name, size_t len) {
  (void)state, (void)name, (void)len;
  return 1;
}

static rocksdb_options_t* logged_options(rocksdb_logger_t** logger) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  *logger = rocksdb_logger_create_callback_logger(0, told, NULL);
  rocksdb_options_set_info_log(options, *logger);
  return options;
}

/* Reads: two options, each in the log once, whatever the calls. */
static void reads(rocksdb_t* db) {
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  CHECK_GET(db, reading, "a", "1");
  rocksdb_readoptions_set_deadline(reading, 1);
  rocksdb_readoptions_set_deadline(reading, 0);
  CHECK_GET(db, reading, "a", "1");
  CHECK(times(NO_EFFECT) == 0);
  rocksdb_readoptions_set_deadline(reading, 1);
  rocksdb_readoptions_set_fill_cache(reading, 0);
  for (int at = 0; at < 3; ++at) CHECK_GET(db, reading, "a", "1");
  CHECK(times("rocksdb_readoptions_set_deadline" NO_EFFECT) == 1 && times(NO_EFFECT) == 1);
  rocksdb_readoptions_set_read_tier(reading, 1);
  for (int at = 0; at < 2; ++at) {
    rocksdb_iterator_t* iter = rocksdb_create_iterator(db, reading);
    rocksdb_iter_seek_to_first(iter);
    CHECK_ROW(iter, "a", "1");
    rocksdb_iter_destroy(iter);
  }
  CHECK(times("rocksdb_readoptions_set_read_tier" NO_EFFECT) == 1 && times(NO_EFFECT) == 2);
  rocksdb_readoptions_destroy(reading);
}

/* Maintenance, ingestion and backups. */
static void calls(rocksdb_t* db, const char* directory) {
  char* error = NULL;
  rocksdb_compactoptions_t* compacting = rocksdb_compactoptions_create();
  rocksdb_compactoptions_set_change_level(compacting, 1);
  rocksdb_compact_range_opt(db, compacting, NULL, 0, NULL, 0);
  rocksdb_compact_range_opt(db, compacting, NULL, 0, NULL, 0);
  CHECK(times("rocksdb_compactoptions_set_change_level" NO_EFFECT) == 1);
  rocksdb_compactoptions_destroy(compacting);

  rocksdb_wait_for_compact_options_t* waiting = rocksdb_wait_for_compact_options_create();
  rocksdb_wait_for_compact_options_set_timeout(waiting, 1000);
  rocksdb_wait_for_compact(db, waiting, &error);
  CHECK_OK(error);
  CHECK(times("rocksdb_wait_for_compact_options_set_timeout" NO_EFFECT) == 1);
  rocksdb_wait_for_compact_options_destroy(waiting);

  rocksdb_compaction_options_t* files = rocksdb_compaction_options_create();
  unsigned char* flag = rocksdb_compaction_options_canceled_create();
  rocksdb_compaction_options_set_canceled(files, flag);
  rocksdb_compact_files(db, files, NULL, 0, 1, 0, NULL, NULL, NULL, &error);
  CHECK_ERROR(error, "Invalid argument");
  CHECK(times("rocksdb_compaction_options_set_canceled" NO_EFFECT) == 1);
  rocksdb_compaction_options_canceled_destroy(flag);
  rocksdb_compaction_options_destroy(files);

  rocksdb_ingestexternalfileoptions_t* ingesting = rocksdb_ingestexternalfileoptions_create();
  rocksdb_ingestexternalfileoptions_set_allow_blocking_flush(ingesting, 0);
  const char* missing[] = {"no/such/file"};
  rocksdb_ingest_external_file(db, missing, 1, ingesting, &error);
  CHECK_ERROR(error, "");
  CHECK(times("rocksdb_ingestexternalfileoptions_set_allow_blocking_flush" NO_EFFECT) == 1);
  rocksdb_ingestexternalfileoptions_destroy(ingesting);

  for (int at = 0; at < 2; ++at) {
    rocksdb_disable_file_deletions(db, &error);
    CHECK_OK(error);
    rocksdb_enable_file_deletions(db, &error);
    CHECK_OK(error);
  }
  CHECK(times("rocksdb_disable_file_deletions" NO_EFFECT) == 1);

  char* place = path_in(directory, "backups");
  rocksdb_backup_engine_options_t* keeping = rocksdb_backup_engine_options_create(place);
  rocksdb_backup_engine_options_set_share_table_files(keeping, 0);
  rocksdb_env_t* env = rocksdb_create_default_env();
  rocksdb_backup_engine_t* engine = rocksdb_backup_engine_open_opts(keeping, env, &error);
  CHECK_OK(error);
  rocksdb_create_backup_options_t* backup = rocksdb_create_backup_options_create();
  rocksdb_create_backup_options_set_exclude_files_callback(backup, NULL, leave_out);
  rocksdb_backup_engine_create_new_backup_with_options(engine, db, backup, NULL, &error);
  CHECK_OK(error);
  CHECK(times("rocksdb_backup_engine_options_set_share_table_files" NO_EFFECT) == 1);
  CHECK(times("rocksdb_create_backup_options_set_exclude_files_callback" NO_EFFECT) == 1);
  rocksdb_create_backup_options_destroy(backup);
  rocksdb_backup_engine_close(engine);
  rocksdb_backup_engine_options_destroy(keeping);
  rocksdb_env_destroy(env);
  free(place);
}

/* A call that fails by the name of its option. */
static void check_refused(char** error, const char* name) {
  CHECK(*error != NULL && strstr(*error, name) != NULL && strstr(*error, "unset TERRANE_ROCKSDB_STRICT") != NULL);
  CHECK_ERROR(*error, REFUSED);
}

static void refused_reads(rocksdb_t* db) {
  char* error = NULL;
  size_t len = 0;
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  rocksdb_readoptions_set_value_size_soft_limit(reading, 10);
  for (int at = 0; at < 2; ++at) {
    CHECK(rocksdb_get(db, reading, "a", 1, &len, &error) == NULL);
    check_refused(&error, "rocksdb_readoptions_set_value_size_soft_limit (");
  }
  CHECK(rocksdb_get_pinned(db, reading, "a", 1, &error) == NULL);
  check_refused(&error, "rocksdb_readoptions_set_value_size_soft_limit (");
  const char* keys[] = {"a", "b"};
  const size_t key_lens[] = {1, 1};
  char* values[2] = {NULL, NULL};
  size_t value_lens[2] = {0, 0};
  char* errors[2] = {NULL, NULL};
  rocksdb_multi_get(db, reading, 2, keys, key_lens, values, value_lens, errors);
  for (int at = 0; at < 2; ++at) {
    CHECK(values[at] == NULL);
    check_refused(&errors[at], "rocksdb_readoptions_set_value_size_soft_limit (");
  }
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, reading);
  rocksdb_iter_seek_to_first(iter);
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_get_error(iter, &error);
  check_refused(&error, "rocksdb_readoptions_set_value_size_soft_limit (");
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_destroy(reading);
}

/* In strict mode calls with such options fail, and others go on. */
static void refused(rocksdb_options_t* options, const char* directory) {
  char* error = NULL;
  char* path = path_in(directory, "refused");
  CHECK(setenv("TERRANE_ROCKSDB_STRICT", "1", 1) == 0);
  rocksdb_transactiondb_options_t* transactions = rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_options_set_write_policy(transactions, 1);
  CHECK(rocksdb_transactiondb_open(options, transactions, path, &error) == NULL);
  check_refused(&error, "rocksdb_transactiondb_options_set_write_policy (");
  rocksdb_backup_engine_options_t* keeping = rocksdb_backup_engine_options_create(path);
  rocksdb_backup_engine_options_set_share_table_files(keeping, 0);
  CHECK(rocksdb_backup_engine_open_opts(keeping, NULL, &error) == NULL);
  check_refused(&error, "rocksdb_backup_engine_options_set_share_table_files (");
  rocksdb_backup_engine_options_destroy(keeping);

  rocksdb_t* db = open_new(options, path);
  put(db, "a", "1");
  refused_reads(db);
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  rocksdb_readoptions_set_fill_cache(reading, 0);
  CHECK_GET(db, reading, "a", "1");
  rocksdb_readoptions_destroy(reading);
  forget_lines();
  rocksdb_compactoptions_t* compacting = rocksdb_compactoptions_create();
  rocksdb_compactoptions_set_target_level(compacting, 2);
  rocksdb_compact_range_opt(db, compacting, NULL, 0, NULL, 0);
  CHECK(times("rocksdb_compactoptions_set_target_level (") == 1);
  rocksdb_compactoptions_destroy(compacting);
  rocksdb_disable_file_deletions(db, &error);
  check_refused(&error, "rocksdb_disable_file_deletions (");
  rocksdb_close(db);

  CHECK(setenv("TERRANE_ROCKSDB_STRICT", "0", 1) == 0);
  forget_lines();
  rocksdb_transactiondb_t* with_transactions = rocksdb_transactiondb_open(options, transactions, path, &error);
  CHECK_OK(error);
  CHECK(times("rocksdb_transactiondb_options_set_write_policy" NO_EFFECT) == 1);
  rocksdb_transactiondb_close(with_transactions);
  rocksdb_transactiondb_options_destroy(transactions);
  free(path);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  rocksdb_logger_t* logger = NULL;
  rocksdb_options_t* options = logged_options(&logger);
  char* path = path_in(arguments[1], "named");
  rocksdb_t* db = open_new(options, path);
  put(db, "a", "1");
  reads(db);
  calls(db, arguments[1]);
  rocksdb_close(db);
  refused(options, arguments[1]);
  rocksdb_options_destroy(options);
  rocksdb_logger_destroy(logger);
  free(path);
  return 0;
}
