/* Objects and functions of the user that are given to options: loggers, factories of filters, managers, sets and texts; names of
 * other versions. */
#include "check.h"

#include <sys/stat.h>

static int destroyed = 0;
static void count_destroyed(void* state) {
  CHECK(state == &destroyed);
  destroyed++;
}
static const char* name(void* state) {
  (void)state;
  return "counted";
}

/* Programs that declare functions as RocksDB's header does compile. */
extern ROCKSDB_LIBRARY_API void rocksdb_free(void* memory);

/* Lines of a logger, one after the other. */
static int debug_lines;
static char lines[65536];
static void remember(void* state, unsigned level, char* line, size_t len) {
  CHECK(state == &destroyed && len == strlen(line));
  debug_lines += level == 0;
  strncat(lines, line, sizeof lines - strlen(lines) - 1);
}

static void loggers(const char* directory) {
  char* error = NULL;
  char* path = path_in(directory, "logged");
  rocksdb_options_t* options = rocksdb_options_create();
  CHECK(rocksdb_options_get_info_log(options) == NULL);
  rocksdb_logger_t* logger = rocksdb_logger_create_callback_logger(1, remember, &destroyed);
  rocksdb_options_set_info_log(options, logger);
  rocksdb_logger_destroy(logger);
  logger = rocksdb_options_get_info_log(options);
  CHECK(logger != NULL);
  rocksdb_logger_destroy(logger);
  rocksdb_t* db = open_new(options, path);
  CHECK(strstr(lines, "opened") != NULL && strstr(lines, path) != NULL);
  rocksdb_column_family_handle_t* cf = rocksdb_create_column_family(db, options, "chatty", &error);
  CHECK_OK(error);
  rocksdb_column_family_handle_destroy(cf);
  /* Listeners are called one after the other, and the last one before the database is closed. */
  rocksdb_close(db);
  CHECK(strstr(lines, "[chatty] created") != NULL);
  /* At the lowest level an opening says what it finds. */
  CHECK(debug_lines == 0);
  logger = rocksdb_logger_create_callback_logger(0, remember, &destroyed);
  rocksdb_options_set_info_log(options, logger);
  rocksdb_logger_destroy(logger);
  rocksdb_destroy_db(options, path, &error);
  CHECK_OK(error);
  rocksdb_close(open_new(options, path));
  CHECK(debug_lines > 0);
  /* Nothing is said below the level. */
  size_t said = strlen(lines);
  logger = rocksdb_logger_create_callback_logger(3, remember, &destroyed);
  rocksdb_options_set_info_log(options, logger);
  rocksdb_logger_destroy(logger);
  rocksdb_destroy_db(options, path, &error);
  CHECK_OK(error);
  db = open_new(options, path);
  rocksdb_close(db);
  CHECK(strlen(lines) == said);
  logger = rocksdb_logger_create_stderr_logger(4, NULL);
  rocksdb_options_set_info_log(options, logger);
  rocksdb_logger_destroy(logger);
  rocksdb_options_set_info_log(options, NULL);
  rocksdb_options_destroy(options);
  free(path);
}

static int made = 0, full = 0, manual = 0, filters_destroyed = 0;
static void count_filters(void* state) {
  (void)state;
  filters_destroyed++;
}
static unsigned char remove_old(void* state, int level, const char* key, size_t key_len, const char* value,
                                size_t value_len, char** new_value, size_t* new_len, unsigned char* changed) {
  (void)state, (void)level, (void)key, (void)key_len, (void)new_value, (void)new_len, (void)changed;
  return value_len == 3 && memcmp(value, "old", 3) == 0;
}
static rocksdb_compactionfilter_t* make_filter(void* state, rocksdb_compactionfiltercontext_t* context) {
  CHECK(state == &destroyed);
  made++;
  full += rocksdb_compactionfiltercontext_is_full_compaction(context);
  manual += rocksdb_compactionfiltercontext_is_manual_compaction(context);
  return rocksdb_compactionfilter_create(NULL, count_filters, remove_old, name);
}
static rocksdb_compactionfilter_t* make_none(void* state, rocksdb_compactionfiltercontext_t* context) {
  (void)state, (void)context;
  made++;
  return NULL;
}

static void filter_factories(const char* directory) {
  char* error = NULL;
  char* path = path_in(directory, "filtered");
  destroyed = 0;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  rocksdb_options_set_compaction_filter_factory(
      options, rocksdb_compactionfilterfactory_create(&destroyed, count_destroyed, make_filter, name));
  rocksdb_t* db = open_new(options, path);
  put(db, "a", "old");
  put(db, "b", "new");
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  CHECK_GET(db, reading, "a", NULL);
  CHECK_GET(db, reading, "b", "new");
  CHECK(made > 0);
  CHECK(full > 0);
  CHECK(manual > 0);
  rocksdb_options_destroy(options);
  CHECK(destroyed == 0);
  rocksdb_close(db);
  CHECK(filters_destroyed == made);
  CHECK(destroyed == 1);

  options = rocksdb_options_create();
  rocksdb_options_set_compaction_filter_factory(
      options, rocksdb_compactionfilterfactory_create(&destroyed, count_destroyed, make_none, name));
  made = 0;
  db = open_new(options, path);
  put(db, "a", "old");
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  CHECK_GET(db, reading, "a", "old");
  CHECK(made > 0);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  CHECK(destroyed == 2);
  rocksdb_compactionfilterfactory_destroy(
      rocksdb_compactionfilterfactory_create(&destroyed, count_destroyed, make_none, name));
  CHECK(destroyed == 3);
  rocksdb_readoptions_destroy(reading);
  CHECK_OK(error);
  free(path);
}

static void refused_at_open(rocksdb_options_t* options, const char* path, const char* what) {
  char* error = NULL;
  rocksdb_options_set_create_if_missing(options, 1);
  CHECK(rocksdb_open(options, path, &error) == NULL);
  CHECK(error != NULL && strstr(error, what) != NULL);
  CHECK_ERROR(error, "Not implemented: ");
}

static void managers(const char* directory) {
  char* error = NULL;
  char* path = path_in(directory, "managed");
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_env_t* env = rocksdb_create_default_env();
  rocksdb_sst_file_manager_t* manager = rocksdb_sst_file_manager_create(env);
  rocksdb_sst_file_manager_set_delete_rate_bytes_per_second(manager, 7);
  CHECK(rocksdb_sst_file_manager_get_delete_rate_bytes_per_second(manager) == 7);
  rocksdb_sst_file_manager_set_max_trash_db_ratio(manager, 0.5);
  CHECK(rocksdb_sst_file_manager_get_max_trash_db_ratio(manager) == 0.5);
  rocksdb_options_set_sst_file_manager(options, manager);
  rocksdb_t* db = open_new(options, path);
  put(db, "k", "v");
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &error);
  CHECK_OK(error);
  rocksdb_flushoptions_destroy(flush);
  CHECK(rocksdb_sst_file_manager_get_total_size(manager) > 0);
  rocksdb_close(db);
  CHECK(rocksdb_sst_file_manager_get_total_size(manager) == 0);
  rocksdb_sst_file_manager_set_max_allowed_space_usage(manager, 1000);
  refused_at_open(options, path, "max_allowed_space_usage");
  rocksdb_options_set_sst_file_manager(options, NULL);
  rocksdb_sst_file_manager_destroy(manager);

  destroyed = 0;
  rocksdb_walfilter_t* filter = rocksdb_walfilter_create(&destroyed, count_destroyed, NULL, NULL, name);
  rocksdb_options_set_wal_filter(options, filter);
  /* One without functions changes nothing. */
  rocksdb_close(open_new(options, path));
  rocksdb_options_clear_wal_filter(options);
  rocksdb_walfilter_destroy(filter);
  CHECK(destroyed == 1);

  rocksdb_file_checksum_gen_factory_t* checksums = rocksdb_file_checksum_gen_crc32c_factory_create();
  rocksdb_options_set_file_checksum_gen_factory(options, checksums);
  rocksdb_file_checksum_gen_factory_destroy(checksums);
  rocksdb_sst_partitioner_factory_t* partitioner = rocksdb_sst_partitioner_fixed_prefix_factory_create(4);
  rocksdb_options_set_sst_partitioner_factory(options, partitioner);
  rocksdb_sst_partitioner_factory_destroy(partitioner);
  rocksdb_ratelimiter_t* limiter = rocksdb_ratelimiter_create_with_mode(1 << 20, 100000, 10, 1, true);
  rocksdb_options_set_ratelimiter(options, limiter);
  rocksdb_ratelimiter_destroy(limiter);
  rocksdb_close(open_new(options, path));
  CHECK(rocksdb_jemalloc_nodump_allocator_create(&error) == NULL);
  CHECK_ERROR(error, "Not implemented: ");

  char* deep = path_in(directory, "made");
  rocksdb_create_dir_if_missing(env, deep, &error);
  CHECK_OK(error);
  rocksdb_create_dir_if_missing(env, deep, &error);
  CHECK_OK(error);
  struct stat found;
  CHECK(stat(deep, &found) == 0 && S_ISDIR(found.st_mode));
  char* deeper = path_in(directory, "missing/made");
  rocksdb_create_dir_if_missing(env, deeper, &error);
  CHECK_ERROR(error, "IO error: ");
  rocksdb_env_destroy(env);
  rocksdb_options_destroy(options);
  free(deeper);
  free(deep);
  free(path);
}

static void sets_and_texts(void) {
  size_t len = 0;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_checksum_handoff_file_types_add(options, 3);
  rocksdb_options_checksum_handoff_file_types_add(options, 3);
  rocksdb_options_calculate_sst_write_lifetime_hint_set_add(options, 1);
  rocksdb_options_t* copy = rocksdb_options_create_copy(options);
  rocksdb_options_checksum_handoff_file_types_remove(options, 3);
  CHECK(rocksdb_options_checksum_handoff_file_types_count(options) == 0);
  CHECK(rocksdb_options_checksum_handoff_file_types_contains(copy, 3));
  CHECK(rocksdb_options_calculate_sst_write_lifetime_hint_set_count(copy) == 2);
  rocksdb_options_calculate_sst_write_lifetime_hint_set_clear(copy);
  CHECK(rocksdb_options_calculate_sst_write_lifetime_hint_set_count(copy) == 0);
  rocksdb_options_set_daily_offpeak_time_utc(copy, "23:30-04:00");
  CHECK(strcmp(rocksdb_options_get_daily_offpeak_time_utc(copy, &len), "23:30-04:00") == 0 && len == 11);
  rocksdb_options_set_db_host_id(copy, "host");
  CHECK(strcmp(rocksdb_options_get_db_host_id(copy, &len), "host") == 0 && len == 4);
  rocksdb_options_destroy(copy);
  rocksdb_options_destroy(options);

  rocksdb_column_family_metadata_options_t* asked = rocksdb_column_family_metadata_options_create();
  CHECK(rocksdb_column_family_metadata_options_get_start_key(asked, &len) == NULL && len == 0);
  CHECK(rocksdb_column_family_metadata_options_get_level(asked) == -1);
  rocksdb_column_family_metadata_options_set_start_key(asked, "ab\0c", 4);
  const char* start = rocksdb_column_family_metadata_options_get_start_key(asked, &len);
  CHECK(len == 4 && memcmp(start, "ab\0c", 4) == 0);
  rocksdb_column_family_metadata_options_destroy(asked);
}

static unsigned char every_file(void* state, const rocksdb_table_properties_t* properties) {
  (void)state, (void)properties;
  return 1;
}

static void read_options(const char* directory) {
  char* error = NULL;
  char* path = path_in(directory, "read");
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_t* db = open_new(options, path);
  put(db, "k", "v");
  destroyed = 0;
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  CHECK(!rocksdb_readoptions_has_merge_operand_count_threshold(reading));
  rocksdb_readoptions_set_merge_operand_count_threshold(reading, 0);
  CHECK(rocksdb_readoptions_has_merge_operand_count_threshold(reading));
  rocksdb_readoptions_clear_merge_operand_count_threshold(reading);
  CHECK(!rocksdb_readoptions_has_merge_operand_count_threshold(reading));
  size_t len = 1;
  CHECK(rocksdb_readoptions_get_request_id(reading, &len) == NULL && len == 0);
  rocksdb_readoptions_set_request_id(reading, "r1", 2);
  CHECK(memcmp(rocksdb_readoptions_get_request_id(reading, &len), "r1", 2) == 0 && len == 2);

  rocksdb_readoptions_set_table_filter(reading, &destroyed, count_destroyed, every_file);
  CHECK(rocksdb_readoptions_has_table_filter(reading));
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, reading);
  rocksdb_iter_seek_to_first(iter);
  CHECK_ROW(iter, "k", "v");
  rocksdb_iter_destroy(iter);
  CHECK_GET(db, reading, "k", "v");
  rocksdb_readoptions_clear_table_filter(reading);
  CHECK(destroyed == 1 && !rocksdb_readoptions_has_table_filter(reading));
  iter = rocksdb_create_iterator(db, reading);
  rocksdb_iter_seek_to_first(iter);
  CHECK_ROW(iter, "k", "v");
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_set_table_index_factory_from_string(reading, "other", 5, &error);
  CHECK_ERROR(error, "Invalid argument: index factory other");
  CHECK(rocksdb_readoptions_get_table_index_factory_name(reading, &len) == NULL && len == 0);
  rocksdb_readoptions_set_table_index_factory_from_string(reading, "trie_index", 10, &error);
  CHECK_OK(error);
  CHECK(memcmp(rocksdb_readoptions_get_table_index_factory_name(reading, &len), "trie_index", 10) == 0 && len == 10);
  rocksdb_readoptions_clear_table_index_factory(reading);
  CHECK(rocksdb_readoptions_get_table_index_factory_name(reading, &len) == NULL);
  rocksdb_readoptions_destroy(reading);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  free(path);
}

static void other_names(const char* directory) {
  char* error = NULL;
  char* path = path_in(directory, "names");
  rocksdb_backupable_db_options_t* backup = rocksdb_backupable_db_options_create(path);
  if (backup != NULL) {
    rocksdb_backupable_db_options_set_sync(backup, 0);
    CHECK(rocksdb_backupable_db_options_get_sync(backup) == 0);
    CHECK(rocksdb_backup_engine_options_get_sync(backup) == 0);
    rocksdb_backupable_db_options_destroy(backup);
  }
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_soft_rate_limit(options, 1.5);
  CHECK(rocksdb_options_get_soft_rate_limit(options) == 1.5);
  destroyed = 0;
  rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
  rocksdb_filterpolicy_destroy(rocksdb_filterpolicy_create_ribbon_format(10, 0));
  rocksdb_filterpolicy_destroy(rocksdb_filterpolicy_create_bloom_format(10, true));
  rocksdb_block_based_options_set_filter_policy(
      table, rocksdb_filterpolicy_create(&destroyed, count_destroyed, NULL, NULL, NULL, name));
  rocksdb_options_set_block_based_table_factory(options, table);
  rocksdb_block_based_options_destroy(table);
  rocksdb_t* db = open_new(options, path);
  CHECK(destroyed == 1);
  rocksdb_set_options(db, 0, NULL, NULL, &error);
  CHECK_ERROR(error, "Invalid argument: empty input");
  rocksdb_abort_all_compactions(db);
  put(db, "k", "v");
  rocksdb_delete_file(db, "000001.sst");
  rocksdb_resume_all_compactions(db);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  CHECK(rocksdb_writebatch_wi_create_from("", 0) == NULL);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  CHECK_OK(error);
  free(path);
}

int main(int count, char** words) {
  CHECK(count == 2);
  loggers(words[1]);
  filter_factories(words[1]);
  managers(words[1]);
  sets_and_texts();
  read_options(words[1]);
  other_names(words[1]);
  return 0;
}
