/* Flush, compaction, properties, sizes of ranges, checkpoints, options that are kept, and what is not there yet. */
#include "check.h"

static rocksdb_readoptions_t* reading;

static void properties(rocksdb_t* db) {
  char* error = NULL;
  uint64_t number = 0;
  char key[16];
  for (int i = 0; i < 1000; i++) {
    snprintf(key, sizeof key, "key%06d", i);
    put(db, key, "a value of some length");
  }
  CHECK(rocksdb_property_int(db, "rocksdb.estimate-num-keys", &number) == 0 && number == 1000);
  CHECK(rocksdb_property_int(db, "rocksdb.num-entries-active-mem-table", &number) == 0 && number == 1000);
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  CHECK(rocksdb_flushoptions_get_wait(flush) == 1);
  rocksdb_flush(db, flush, &error);
  CHECK_OK(error);
  rocksdb_flushoptions_destroy(flush);
  CHECK(rocksdb_property_int(db, "rocksdb.num-entries-active-mem-table", &number) == 0 && number == 0);
  CHECK(rocksdb_property_int(db, "rocksdb.estimate-num-keys", &number) == 0 && number == 1000);
  CHECK(rocksdb_property_int(db, "rocksdb.total-sst-files-size", &number) == 0 && number > 0);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  CHECK_GET(db, reading, "key000007", "a value of some length");

  const char* texts[] = {"rocksdb.stats", "rocksdb.levelstats", "rocksdb.sstables", "rocksdb.num-files-at-level0",
                         "rocksdb.num-files-at-level6", "rocksdb.block-cache-usage"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    char* text = rocksdb_property_value(db, texts[i]);
    CHECK(text != NULL && text[0] != 0);
    rocksdb_free(text);
  }
  CHECK(rocksdb_property_value(db, "rocksdb.num-files-at-level99") == NULL);
  CHECK(rocksdb_property_value(db, "rocksdb.no-such-property") == NULL);
  CHECK(rocksdb_property_value(db, "elsewhere") == NULL);
  CHECK(rocksdb_property_int(db, "rocksdb.levelstats", &number) != 0);

  const char *starts[2] = {"key000000", "x"}, *limits[2] = {"key000500", "y"};
  const size_t start_lens[2] = {9, 1}, limit_lens[2] = {9, 1};
  uint64_t sizes[2] = {7, 7};
  rocksdb_approximate_sizes(db, 2, starts, start_lens, limits, limit_lens, sizes, &error);
  CHECK_OK(error);
  CHECK(sizes[0] > 0 && sizes[1] == 0);
  rocksdb_wait_for_compact_options_t* wait = rocksdb_wait_for_compact_options_create();
  rocksdb_wait_for_compact(db, wait, &error);
  CHECK_OK(error);
  rocksdb_wait_for_compact_options_destroy(wait);
  rocksdb_verify_checksum(db, &error);
  CHECK_OK(error);
  rocksdb_flush_wal(db, 1, &error);
  CHECK_OK(error);
}

static void dropped_files(rocksdb_t* db) {
  char* error = NULL;
  rocksdb_delete_file_in_range(db, "key", 3, "kez", 3, &error);
  CHECK_OK(error);
  CHECK_GET(db, reading, "key000007", NULL);
}

static void checkpoints(rocksdb_options_t* options, rocksdb_t* db, const char* directory) {
  char* error = NULL;
  char* path = path_in(directory, "checkpoint");
  put(db, "k", "before");
  rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, &error);
  CHECK_OK(error);
  rocksdb_checkpoint_create(checkpoint, path, 0, &error);
  CHECK_OK(error);
  put(db, "k", "after");
  rocksdb_checkpoint_create(checkpoint, path, 0, &error);
  CHECK_ERROR(error, "Invalid argument: Directory exists");
  rocksdb_checkpoint_object_destroy(checkpoint);
  rocksdb_t* second = rocksdb_open(options, path, &error);
  CHECK_OK(error);
  CHECK_GET(second, reading, "k", "before");
  CHECK_GET(db, reading, "k", "after");
  rocksdb_close(second);
  free(path);
}

static void kept_options(void) {
  rocksdb_options_t* options = rocksdb_options_create();
  CHECK(rocksdb_options_get_write_buffer_size(options) == 64 << 20);
  CHECK(rocksdb_options_get_compression(options) == rocksdb_lz4_compression);
  rocksdb_options_set_max_open_files(options, 21);
  rocksdb_options_set_WAL_ttl_seconds(options, 60);
  rocksdb_options_set_blob_gc_age_cutoff(options, 0.75);
  rocksdb_options_set_disable_auto_compactions(options, 1);
  rocksdb_options_t* copy = rocksdb_options_create_copy(options);
  rocksdb_options_destroy(options);
  CHECK(rocksdb_options_get_max_open_files(copy) == 21);
  CHECK(rocksdb_options_get_WAL_ttl_seconds(copy) == 60);
  CHECK(rocksdb_options_get_blob_gc_age_cutoff(copy) == 0.75);
  CHECK(rocksdb_options_get_disable_auto_compactions(copy) == 1);
  rocksdb_options_optimize_level_style_compaction(copy, 64 << 20);
  CHECK(rocksdb_options_get_write_buffer_size(copy) == 16 << 20);
  rocksdb_options_increase_parallelism(copy, 4);
  CHECK(rocksdb_options_get_max_background_jobs(copy) == 4);
  rocksdb_options_destroy(copy);
  rocksdb_options_set_max_open_files(NULL, 1);
  CHECK(rocksdb_options_get_max_open_files(NULL) == 0);

  rocksdb_cache_t* cache = rocksdb_cache_create_lru(1 << 20);
  CHECK(rocksdb_cache_get_capacity(cache) == 1 << 20);
  rocksdb_cache_set_capacity(cache, 2 << 20);
  CHECK(rocksdb_cache_get_capacity(cache) == 2 << 20);
  rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
  CHECK(rocksdb_block_based_options_get_block_size(table) == 4096);
  rocksdb_block_based_options_set_block_cache(table, cache);
  rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(10));
  rocksdb_cache_destroy(cache);
  rocksdb_block_based_options_destroy(table);
}

static void options_as_text(rocksdb_t* db) {
  char* error = NULL;
  rocksdb_options_t* base = rocksdb_options_create();
  rocksdb_options_t* made = rocksdb_options_create();
  rocksdb_get_options_from_string(base, "max_open_files=33;block_based_table_factory={block_size=8K}", made, &error);
  CHECK_OK(error);
  CHECK(rocksdb_options_get_max_open_files(made) == 33);
  rocksdb_get_options_from_string(base, "max_open_files=34;nonsense=1", made, &error);
  CHECK(error != NULL && strstr(error, "nonsense") != NULL);
  CHECK_ERROR(error, "Invalid argument: ");
  CHECK(rocksdb_options_get_max_open_files(made) == 33);
  rocksdb_options_destroy(base);
  rocksdb_options_destroy(made);
  const char *names[1] = {"disable_auto_compactions"}, *values[1] = {"true"}, *unknown[1] = {"nonsense"};
  rocksdb_set_options(db, 1, names, values, &error);
  CHECK_OK(error);
  rocksdb_set_options(db, 1, unknown, values, &error);
  CHECK_ERROR(error, "Invalid argument: ");
}

static void memory(rocksdb_t* db) {
  char* error = NULL;
  put(db, "in-memory", "some bytes");
  rocksdb_memory_consumers_t* consumers = rocksdb_memory_consumers_create();
  rocksdb_memory_consumers_add_db(consumers, db);
  rocksdb_memory_usage_t* usage = rocksdb_approximate_memory_usage_create(consumers, &error);
  CHECK_OK(error);
  CHECK(rocksdb_approximate_memory_usage_get_mem_table_total(usage) > 10);
  rocksdb_approximate_memory_usage_destroy(usage);
  rocksdb_memory_consumers_destroy(consumers);
}

static void perf(rocksdb_t* db) {
  char* error = NULL;
  size_t len = 0;
  rocksdb_set_perf_level(rocksdb_enable_count);
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &error);
  CHECK_OK(error);
  rocksdb_flushoptions_destroy(flush);
  rocksdb_perfcontext_t* context = rocksdb_perfcontext_create();
  rocksdb_perfcontext_reset(context);
  char* value = rocksdb_get(db, reading, "k", 1, &len, &error);
  CHECK(value != NULL && error == NULL);
  rocksdb_free(value);
  uint64_t blocks = rocksdb_perfcontext_metric(context, rocksdb_block_cache_hit_count) +
                    rocksdb_perfcontext_metric(context, rocksdb_block_read_count);
  CHECK(blocks > 0);
  CHECK(rocksdb_perfcontext_metric(context, rocksdb_env_lock_file_nanos) == 0);
  char* report = rocksdb_perfcontext_report(context, 0);
  CHECK(strstr(report, "block_read_count = ") != NULL);
  rocksdb_free(report);
  rocksdb_perfcontext_destroy(context);
}

static void write_buffers(const char* directory) {
  char* path = path_in(directory, "write-buffers");
  rocksdb_cache_t* cache = rocksdb_cache_create_hyper_clock(256 << 20, 0);
  rocksdb_write_buffer_manager_t* manager = rocksdb_write_buffer_manager_create_with_cache(96 << 20, cache, 0);
  CHECK(rocksdb_write_buffer_manager_enabled(manager) && rocksdb_write_buffer_manager_cost_to_cache(manager));
  CHECK(rocksdb_write_buffer_manager_buffer_size(manager) == 96 << 20);
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_block_cache(table, cache);
  rocksdb_options_set_block_based_table_factory(options, table);
  rocksdb_options_set_write_buffer_manager(options, manager);
  rocksdb_t* db = open_new(options, path);
  uint64_t capacity = 0;
  CHECK(rocksdb_property_int(db, "rocksdb.block-cache-capacity", &capacity) == 0);
  CHECK(capacity == (256 - 96) << 20);
  rocksdb_write_buffer_manager_destroy(manager);
  rocksdb_cache_destroy(cache);
  rocksdb_block_based_options_destroy(table);
  rocksdb_options_destroy(options);
  rocksdb_close(db);
  free(path);
}

static uint64_t unflushed(rocksdb_t* db, rocksdb_column_family_handle_t* family) {
  uint64_t entries = 0;
  CHECK(rocksdb_property_int_cf(db, family, "rocksdb.num-entries-active-mem-table", &entries) == 0);
  return entries;
}

/* A flush of a column family leaves the memtables of the others alone. */
static void flushes_of_families(rocksdb_options_t* options, const char* directory) {
  char* path = path_in(directory, "flushes");
  rocksdb_t* db = open_new(options, path);
  rocksdb_writeoptions_t* writing = rocksdb_writeoptions_create();
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  char* error = NULL;
  rocksdb_column_family_handle_t* families[3] = {
      rocksdb_get_default_column_family_handle(db),
      rocksdb_create_column_family(db, options, "one", &error),
      rocksdb_create_column_family(db, options, "two", &error),
  };
  CHECK_OK(error);
  for (int family = 0; family < 3; family++) {
    rocksdb_put_cf(db, writing, families[family], "key", 3, "value", 5, &error);
    CHECK_OK(error);
  }
  rocksdb_flush_cf(db, flush, families[1], &error);
  CHECK_OK(error);
  CHECK(unflushed(db, families[0]) == 1 && unflushed(db, families[1]) == 0 && unflushed(db, families[2]) == 1);
  rocksdb_flush(db, flush, &error);
  CHECK_OK(error);
  CHECK(unflushed(db, families[0]) == 0 && unflushed(db, families[2]) == 1);
  rocksdb_put_cf(db, writing, families[1], "key", 3, "value", 5, &error);
  CHECK_OK(error);
  rocksdb_flush_cfs(db, flush, families + 1, 2, &error);
  CHECK_OK(error);
  CHECK(unflushed(db, families[1]) == 0 && unflushed(db, families[2]) == 0);
  /* While the background is paused a flush that waits is refused; one that does not is done when it goes on. */
  rocksdb_put_cf(db, writing, families[1], "key", 3, "other", 5, &error);
  CHECK_OK(error);
  rocksdb_pause_background_work(db, &error);
  CHECK_OK(error);
  rocksdb_flushoptions_set_wait(flush, 0);
  rocksdb_flush_cf(db, flush, families[1], &error);
  CHECK_OK(error);
  rocksdb_continue_background_work(db, &error);
  CHECK_OK(error);
  rocksdb_flushoptions_set_wait(flush, 1);
  rocksdb_flush_cf(db, flush, families[1], &error);
  CHECK_OK(error);
  CHECK(unflushed(db, families[1]) == 0);
  rocksdb_flush_cf(db, flush, NULL, &error);
  CHECK(error != NULL);
  rocksdb_free(error);
  rocksdb_column_family_handle_destroy(families[1]);
  rocksdb_column_family_handle_destroy(families[2]);
  rocksdb_flushoptions_destroy(flush);
  rocksdb_writeoptions_destroy(writing);
  rocksdb_close(db);
  free(path);
}

static void refused(rocksdb_t* db) {
  char* error = NULL;
  rocksdb_writebatch_wi_update_timestamps(NULL, "", 0, NULL, NULL, &error);
  CHECK_ERROR(error, "Not implemented: rocksdb_writebatch_wi_update_timestamps");
  CHECK(rocksdb_get_full_history_ts_low(db, NULL, NULL, &error) == NULL);
  CHECK_ERROR(error, "Invalid argument: Timestamp is not enabled in this column family");
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  char* path = path_in(arguments[1], "maintain");
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
  rocksdb_cache_t* cache = rocksdb_cache_create_lru(64 << 20);
  rocksdb_block_based_options_set_block_cache(table, cache);
  rocksdb_block_based_options_set_block_size(table, 8192);
  rocksdb_options_set_block_based_table_factory(options, table);
  rocksdb_block_based_options_destroy(table);
  rocksdb_cache_destroy(cache);
  rocksdb_ratelimiter_t* limiter = rocksdb_ratelimiter_create(100 << 20, 100000, 10);
  rocksdb_options_set_ratelimiter(options, limiter);
  rocksdb_ratelimiter_destroy(limiter);
  reading = rocksdb_readoptions_create();
  rocksdb_t* db = open_new(options, path);
  properties(db);
  dropped_files(db);
  checkpoints(options, db, arguments[1]);
  kept_options();
  options_as_text(db);
  memory(db);
  perf(db);
  write_buffers(arguments[1]);
  flushes_of_families(options, arguments[1]);
  refused(db);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  rocksdb_readoptions_destroy(reading);
  free(path);
  return 0;
}
