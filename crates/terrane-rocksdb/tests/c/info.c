/* Information about a database: the file LOG, files OPTIONS and reading them, the use of caches, statistics as text; and
 * manual compactions that are paused, checksums of files, objects of compactions elsewhere. */
#include "check.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <threads.h>
#include <unistd.h>

static char path[1024];
static rocksdb_readoptions_t* reading;
static rocksdb_writeoptions_t* writing;

/* How many files in a directory have names that begin so; the path of one of them. */
static int files(const char* directory, const char* beginning, char* one) {
  DIR* open = opendir(directory);
  int count = 0;
  if (open == NULL) return 0;
  for (struct dirent* entry = readdir(open); entry != NULL; entry = readdir(open)) {
    if (strncmp(entry->d_name, beginning, strlen(beginning)) == 0) {
      count++;
      if (one != NULL) snprintf(one, 2048, "%s/%s", directory, entry->d_name);
    }
  }
  closedir(open);
  return count;
}

static int has(const char* file, const char* text) {
  static char bytes[1 << 20];
  FILE* open = fopen(file, "rb");
  CHECK(open != NULL);
  size_t len = fread(bytes, 1, sizeof bytes - 1, open);
  fclose(open);
  bytes[len] = 0;
  return strstr(bytes, text) != NULL;
}

static void write_file(const char* file, const char* text) {
  FILE* open = fopen(file, "wb");
  CHECK(open != NULL && fputs(text, open) >= 0 && fclose(open) == 0);
}

static rocksdb_options_t* creating(void) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  return options;
}

static void put_row(rocksdb_t* db, const char* key, const char* value) {
  char* error = NULL;
  rocksdb_put(db, writing, key, strlen(key), value, strlen(value), &error);
  CHECK_OK(error);
}

static void log_file(const char* directory) {
  char* error = NULL;
  char file[2048], elsewhere[1100];
  rocksdb_options_t* options = creating();
  rocksdb_options_set_keep_log_file_num(options, 2);
  rocksdb_options_set_ttl(options, 86400);
  rocksdb_options_add_compact_on_deletion_collector_factory_del_ratio(options, 5, 10, 0.5);
  rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_data_block_hash_ratio(table, 0.35);
  rocksdb_options_set_block_based_table_factory(options, table);
  rocksdb_block_based_options_destroy(table);
  for (int round = 0; round < 3; round++) {
    rocksdb_t* db = rocksdb_open(options, path, &error);
    CHECK_OK(error);
    put_row(db, "key", "value");
    rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
    rocksdb_flush(db, flush, &error);
    CHECK_OK(error);
    rocksdb_flushoptions_destroy(flush);
    rocksdb_close(db);
  }
  snprintf(file, sizeof file, "%s/LOG", path);
  CHECK(has(file, "Options.create_if_missing: 1\n") && has(file, "Options.ttl: 86400\n"));
  CHECK(has(file, "data_block_hash_table_util_ratio: 0.350000\n") && has(file, "Options.use_fsync: 0\n"));
  CHECK(has(file, "CompactOnDeletionCollector (Sliding window size = 5 Deletion trigger = 10 Deletion ratio = 0.5)"));
  CHECK(has(file, "[default] flush ended"));
  /* What is no codec here may be set, and the log says what is stored then. */
  CHECK(has(file, "\tkLZ4Compression supported: 1\n"));
  CHECK(has(file, "\tkSnappyCompression supported: 0 (may be set: stored with lz4)\n"));
  CHECK(has(file, "\tkZlibCompression supported: 0 (may be set: stored with "));
  CHECK(files(path, "LOG", NULL) == 3 - 1 && files(path, "LOG.old.", NULL) == 1);

  /* What looks at a database without writing it leaves the file alone. */
  rocksdb_t* db = rocksdb_open_for_read_only(options, path, 0, &error);
  CHECK_OK(error);
  rocksdb_close(db);
  CHECK(files(path, "LOG.old.", NULL) == 1);
  rocksdb_destroy_db(options, path, &error);
  CHECK_OK(error);
  CHECK(files(path, "", NULL) == 0);

  snprintf(elsewhere, sizeof elsewhere, "%s/logs", directory);
  rocksdb_options_set_db_log_dir(options, elsewhere);
  db = rocksdb_open(options, path, &error);
  CHECK_OK(error);
  rocksdb_close(db);
  CHECK(files(path, "LOG", NULL) == 0 && files(elsewhere, "", file) == 3 && strstr(file, elsewhere) != NULL);
  rocksdb_destroy_db(options, path, &error);
  CHECK_OK(error);
  CHECK(files(elsewhere, "", NULL) == 2);
  rocksdb_options_destroy(options);
}

static void load(int ignores, size_t expected, const char* failure) {
  char* error = NULL;
  rocksdb_options_t *database = NULL, **families = NULL;
  char** names = NULL;
  size_t count = 0;
  rocksdb_env_t* env = rocksdb_create_default_env();
  rocksdb_cache_t* cache = rocksdb_cache_create_lru(1 << 20);
  rocksdb_load_latest_options(path, env, ignores, cache, &database, &count, &names, &families, &error);
  if (failure != NULL) {
    CHECK(error != NULL && strstr(error, failure) != NULL && database == NULL && count == 0);
    rocksdb_free(error);
  } else {
    CHECK_OK(error);
    CHECK(count == expected && strcmp(names[0], "default") == 0);
    CHECK(rocksdb_options_get_max_open_files(database) == 77);
    CHECK(rocksdb_options_get_compaction_pri(families[count - 1]) == 4);
    rocksdb_column_family_handle_t* handles[4];
    rocksdb_t* db = rocksdb_open_column_families(database, path, (int)count, (const char* const*)names,
                                                 (const rocksdb_options_t* const*)families, handles, &error);
    CHECK_OK(error);
    for (size_t i = 0; i < count; i++) rocksdb_column_family_handle_destroy(handles[i]);
    rocksdb_close(db);
    rocksdb_load_latest_options_destroy(database, names, families, count);
  }
  rocksdb_cache_destroy(cache);
  rocksdb_env_destroy(env);
}

static void options_files(void) {
  char* error = NULL;
  char file[2048];
  load(0, 0, "While listing");
  rocksdb_options_t* options = creating();
  rocksdb_options_set_max_open_files(options, 77);
  rocksdb_options_set_compaction_pri(options, 4);
  rocksdb_t* db = rocksdb_open(options, path, &error);
  CHECK_OK(error);
  CHECK(files(path, "OPTIONS-", file) == 1);
  CHECK(has(file, "compaction_pri=kRoundRobin") && has(file, "create_if_missing=true"));
  /* A column family that was made is no failure because its options could not be written; the log says so. */
  char in_the_way[1100];
  snprintf(in_the_way, sizeof in_the_way, "%s/OPTIONS-000002.dbtmp", path);
  CHECK(mkdir(in_the_way, 0700) == 0);
  rocksdb_column_family_handle_t* family = rocksdb_create_column_family(db, options, "untold", &error);
  CHECK_OK(error);
  snprintf(file, sizeof file, "%s/LOG", path);
  CHECK(has(file, "the options could not be written"));
  rocksdb_drop_column_family(db, family, &error);
  CHECK_OK(error);
  rocksdb_column_family_handle_destroy(family);
  CHECK(rmdir(in_the_way) == 0 && files(path, "OPTIONS-", NULL) == 1);
  family = rocksdb_create_column_family(db, options, "more \"#", &error);
  CHECK_OK(error);
  CHECK(files(path, "OPTIONS-", NULL) == 2);
  const char *names[] = {"max_write_buffer_number"}, *values[] = {"7"};
  rocksdb_set_options_cf(db, family, 1, names, values, &error);
  CHECK_OK(error);
  rocksdb_column_family_handle_destroy(family);
  rocksdb_close(db);
  CHECK(files(path, "OPTIONS-", NULL) == 2);
  CHECK(files(path, "OPTIONS-000003", file) == 1 && has(file, "max_write_buffer_number=7"));
  load(0, 2, NULL);

  snprintf(file, sizeof file, "%s/OPTIONS-000009", path);
  write_file(file, "[DBOptions]\n  no_such_option=1\n[CFOptions \"default\"]\n  compaction_pri=kRoundRobin\n");
  load(0, 0, "OPTIONS-000009: line 2: Could not find option: no_such_option");
  write_file(file, "this is no such file\n");
  load(1, 0, "line 1");
  rocksdb_options_destroy(options);
}

static void cache_use(void) {
  char* error = NULL;
  rocksdb_options_t* options = creating();
  rocksdb_cache_t *cache = rocksdb_cache_create_lru(8 << 20), *other = rocksdb_cache_create_lru(8 << 20);
  rocksdb_block_based_table_options_t* table = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_block_cache(table, cache);
  rocksdb_options_set_block_based_table_factory(options, table);
  rocksdb_block_based_options_destroy(table);
  rocksdb_t* db = rocksdb_open(options, path, &error);
  CHECK_OK(error);
  /* Of an empty database what the cache itself is made of. */
  const size_t empty = rocksdb_cache_get_usage(cache);
  CHECK(empty > 0 && empty < 1 << 20 && rocksdb_cache_get_pinned_usage(cache) == 0);
  put_row(db, "key", "value");
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  CHECK_GET(db, reading, "key", "value");
  CHECK(rocksdb_cache_get_usage(cache) > empty && rocksdb_cache_get_usage(other) == 0);
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, reading);
  rocksdb_iter_seek_to_first(iter);
  CHECK(rocksdb_cache_get_pinned_usage(cache) > 0);
  rocksdb_iter_destroy(iter);
  CHECK(rocksdb_cache_get_pinned_usage(cache) == 0);

  rocksdb_memory_consumers_t* consumers = rocksdb_memory_consumers_create();
  rocksdb_memory_consumers_add_db(consumers, db);
  rocksdb_memory_usage_t* usage = rocksdb_approximate_memory_usage_create(consumers, &error);
  CHECK_OK(error);
  CHECK(rocksdb_approximate_memory_usage_get_cache_total(usage) == 0);
  rocksdb_approximate_memory_usage_destroy(usage);
  rocksdb_memory_consumers_add_cache(consumers, cache);
  usage = rocksdb_approximate_memory_usage_create(consumers, &error);
  CHECK_OK(error);
  CHECK(rocksdb_approximate_memory_usage_get_cache_total(usage) > 0);
  rocksdb_approximate_memory_usage_destroy(usage);

  /* A database that is opened with two caches has one of its own. */
  rocksdb_options_t* others = rocksdb_options_create();
  table = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_block_cache(table, other);
  rocksdb_options_set_block_based_table_factory(others, table);
  rocksdb_block_based_options_destroy(table);
  rocksdb_column_family_handle_t* family = rocksdb_create_column_family(db, others, "more", &error);
  CHECK_OK(error);
  rocksdb_options_destroy(others);
  rocksdb_memory_consumers_add_cache(consumers, other);
  usage = rocksdb_approximate_memory_usage_create(consumers, &error);
  CHECK_OK(error);
  uint64_t total = rocksdb_approximate_memory_usage_get_cache_total(usage);
  CHECK(total > 0 && total == rocksdb_cache_get_usage(cache) && total == rocksdb_cache_get_usage(other));
  rocksdb_approximate_memory_usage_destroy(usage);
  rocksdb_memory_consumers_destroy(consumers);
  rocksdb_column_family_handle_destroy(family);

  char* stats = rocksdb_property_value(db, "rocksdb.stats");
  CHECK(strstr(stats, "** Compaction Stats [default] **") != NULL);
  CHECK(strstr(stats, "Cumulative writes: 1 writes, 1 keys") != NULL);
  rocksdb_free(stats);
  rocksdb_close(db);
  CHECK(rocksdb_cache_get_usage(cache) == 0);
  rocksdb_destroy_db(options, path, &error);
  CHECK_OK(error);
  rocksdb_cache_destroy(cache);
  rocksdb_cache_destroy(other);
  rocksdb_options_destroy(options);
}

static unsigned char drop_all(void* state, int level, const char* key, size_t key_len, const char* value,
                              size_t value_len, char** new_value, size_t* new_len, unsigned char* changed) {
  (void)state, (void)level, (void)key, (void)key_len, (void)value, (void)value_len;
  (void)new_value, (void)new_len, (void)changed;
  return 1;
}

static const char* name(void* state) {
  (void)state;
  return "drop_all";
}

static void nothing(void* state) { (void)state; }

static atomic_int is_asked;
static atomic_int is_disabled;

/* Another thread disables manual compactions while a filter is at work for one. */
static void* disable(void* db) {
  while (!atomic_load(&is_asked)) sched_yield();
  rocksdb_disable_manual_compaction(db);
  atomic_store(&is_disabled, 1);
  return NULL;
}

static unsigned char keep_until_disabled(void* state, int level, const char* key, size_t key_len, const char* value,
                                         size_t value_len, char** new_value, size_t* new_len,
                                         unsigned char* changed) {
  (void)state, (void)level, (void)key, (void)key_len, (void)value, (void)value_len;
  (void)new_value, (void)new_len, (void)changed;
  atomic_store(&is_asked, 1);
  while (!atomic_load(&is_disabled)) sched_yield();
  return 0;
}

static void compact_all_files(rocksdb_t* db, char** error) {
  const rocksdb_livefiles_t* files = rocksdb_livefiles(db);
  CHECK(rocksdb_livefiles_count(files) == 1);
  const char* inputs[1] = {rocksdb_livefiles_name(files, 0)};
  rocksdb_compaction_options_t* options = rocksdb_compaction_options_create();
  char** outputs = NULL;
  size_t count = 0;
  rocksdb_compact_files(db, options, inputs, 1, 6, -1, &outputs, &count, NULL, error);
  if (*error == NULL) rocksdb_compact_files_output_file_names_destroy(outputs, count);
  rocksdb_compaction_options_destroy(options);
  rocksdb_livefiles_destroy(files);
}

/* Compactions that a listener was told of. */
typedef struct {
  int begun, ended, aborted;
} Compactions;

static void compaction_begun(void* state, rocksdb_t* db, const rocksdb_compactionjobinfo_t* info) {
  (void)db, (void)info;
  ((Compactions*)state)->begun++;
}

static void compaction_ended(void* state, rocksdb_t* db, const rocksdb_compactionjobinfo_t* info) {
  (void)db;
  Compactions* told = state;
  char* error = NULL;
  told->ended++;
  rocksdb_compactionjobinfo_status(info, &error);
  if (rocksdb_compactionjobinfo_aborted(info)) {
    told->aborted++;
    CHECK_ERROR(error, "Result incomplete: Manual compaction paused");
  }
  CHECK_OK(error);
}

static void manual_compaction_that_runs(void) {
  char* error = NULL;
  rocksdb_options_t* options = creating();
  rocksdb_compactionfilter_t* filter = rocksdb_compactionfilter_create(NULL, nothing, keep_until_disabled, name);
  rocksdb_t* db = rocksdb_open(options, path, &error);
  CHECK_OK(error);
  put_row(db, "key", "value");
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  rocksdb_close(db);
  rocksdb_options_set_compaction_filter(options, filter);
  Compactions told = {0};
  rocksdb_options_add_eventlistener(
      options, rocksdb_eventlistener_create(&told, nothing, NULL, NULL, compaction_begun, compaction_ended, NULL, NULL,
                                            NULL, NULL, NULL, NULL));
  db = rocksdb_open(options, path, &error);
  CHECK_OK(error);
  pthread_t other;
  CHECK(pthread_create(&other, NULL, disable, db) == 0);
  compact_all_files(db, &error);
  CHECK_ERROR(error, "Result incomplete: Manual compaction paused");
  CHECK(pthread_join(other, NULL) == 0);
  compact_all_files(db, &error);
  CHECK_ERROR(error, "Result incomplete: Manual compaction paused");
  rocksdb_enable_manual_compaction(db);
  compact_all_files(db, &error);
  CHECK_OK(error);
  CHECK_GET(db, reading, "key", "value");
  rocksdb_close(db);
  /* One that was given up while the database was open has ended, too. */
  CHECK(told.aborted == 1 && told.begun == 2 && told.ended == 2);
  rocksdb_destroy_db(options, path, &error);
  CHECK_OK(error);
  rocksdb_options_destroy(options);
  rocksdb_compactionfilter_destroy(filter);
}

static atomic_int is_filtering;
static atomic_int is_dropped;

static unsigned char keep_until_dropped(void* state, int level, const char* key, size_t key_len, const char* value,
                                        size_t value_len, char** new_value, size_t* new_len,
                                        unsigned char* changed) {
  (void)state, (void)level, (void)key, (void)key_len, (void)value, (void)value_len;
  (void)new_value, (void)new_len, (void)changed;
  atomic_store(&is_filtering, 1);
  while (!atomic_load(&is_dropped)) sched_yield();
  return 0;
}

static rocksdb_column_family_handle_t* dropped;

static void* compact_dropped(void* db) {
  rocksdb_compact_range_cf(db, dropped, NULL, 0, NULL, 0);
  return NULL;
}

/* How the last compaction ended. */
typedef struct {
  atomic_int ended;
  int aborted;
  char* error;
} Ending;

static void note_ending(void* state, rocksdb_t* db, const rocksdb_compactionjobinfo_t* info) {
  (void)db;
  Ending* ending = state;
  ending->aborted = rocksdb_compactionjobinfo_aborted(info);
  rocksdb_free(ending->error);
  ending->error = NULL;
  rocksdb_compactionjobinfo_status(info, &ending->error);
  atomic_fetch_add(&ending->ended, 1);
}

/* A compaction whose column family is dropped meanwhile was neither paused nor aborted. */
static void compaction_of_a_dropped_family(void) {
  char* error = NULL;
  rocksdb_options_t* options = creating();
  rocksdb_compactionfilter_t* filter = rocksdb_compactionfilter_create(NULL, nothing, keep_until_dropped, name);
  rocksdb_t* db = rocksdb_open(options, path, &error);
  CHECK_OK(error);
  dropped = rocksdb_create_column_family(db, options, "dropped", &error);
  CHECK_OK(error);
  rocksdb_put_cf(db, writing, dropped, "key", 3, "value", 5, &error);
  CHECK_OK(error);
  rocksdb_compact_range_cf(db, dropped, NULL, 0, NULL, 0);
  rocksdb_column_family_handle_destroy(dropped);
  rocksdb_close(db);

  rocksdb_options_set_compaction_filter(options, filter);
  Ending ending = {0};
  rocksdb_options_add_eventlistener(
      options, rocksdb_eventlistener_create(&ending, nothing, NULL, NULL, NULL, note_ending, NULL, NULL, NULL, NULL,
                                            NULL, NULL));
  const char* const names[] = {"default", "dropped"};
  const rocksdb_options_t* both[] = {options, options};
  rocksdb_column_family_handle_t* handles[2];
  db = rocksdb_open_column_families(options, path, 2, names, both, handles, &error);
  CHECK_OK(error);
  dropped = handles[1];
  pthread_t other;
  CHECK(pthread_create(&other, NULL, compact_dropped, db) == 0);
  while (!atomic_load(&is_filtering)) sched_yield();
  rocksdb_drop_column_family(db, dropped, &error);
  CHECK_OK(error);
  atomic_store(&is_dropped, 1);
  CHECK(pthread_join(other, NULL) == 0);
  /* Two minutes: nobody waits for a compaction of what is gone. */
  for (int rounds = 0; atomic_load(&ending.ended) == 0; rounds++) {
    CHECK(rounds < 12000);
    thrd_sleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }
  rocksdb_column_family_handle_destroy(handles[0]);
  rocksdb_column_family_handle_destroy(dropped);
  rocksdb_close(db);
  CHECK(atomic_load(&ending.ended) == 1 && ending.aborted == 0);
  CHECK_ERROR(ending.error, "Column family dropped: ");
  rocksdb_destroy_db(options, path, &error);
  CHECK_OK(error);
  rocksdb_options_destroy(options);
  rocksdb_compactionfilter_destroy(filter);
}

static void manual_compactions(void) {
  char* error = NULL;
  rocksdb_options_t* options = creating();
  rocksdb_compactionfilter_t* filter = rocksdb_compactionfilter_create(NULL, nothing, drop_all, name);
  rocksdb_options_set_compaction_filter(options, filter);
  rocksdb_t* db = rocksdb_open(options, path, &error);
  CHECK_OK(error);
  put_row(db, "key", "value");
  // An enabling before undoes one disabling, as bindings rely on that begin with one.
  rocksdb_enable_manual_compaction(db);
  rocksdb_disable_manual_compaction(db);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  CHECK_GET(db, reading, "key", NULL);
  put_row(db, "key", "value");
  rocksdb_disable_manual_compaction(db);
  rocksdb_disable_manual_compaction(db);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  rocksdb_enable_manual_compaction(db);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  CHECK_GET(db, reading, "key", "value");
  rocksdb_enable_manual_compaction(db);
  rocksdb_enable_manual_compaction(db);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  CHECK_GET(db, reading, "key", NULL);
  rocksdb_verify_file_checksums(db, &error);
  CHECK_ERROR(error, "Invalid argument: Cannot verify file checksum");
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  rocksdb_compactionfilter_destroy(filter);

  options = rocksdb_options_create();
  rocksdb_file_checksum_gen_factory_t* factory = rocksdb_file_checksum_gen_crc32c_factory_create();
  rocksdb_options_set_file_checksum_gen_factory(options, factory);
  rocksdb_file_checksum_gen_factory_destroy(factory);
  db = rocksdb_open(options, path, &error);
  CHECK_OK(error);
  rocksdb_verify_file_checksums(db, &error);
  CHECK_OK(error);
  rocksdb_close(db);
  rocksdb_destroy_db(options, path, &error);
  CHECK_OK(error);
  rocksdb_options_destroy(options);
}

static void kept_objects(void) {
  char* error = NULL;
  size_t len = 0;
  rocksdb_compactionservice_scheduleresponse_t* response = rocksdb_compactionservice_scheduleresponse_create(
      "job", rocksdb_compactionservice_jobstatus_success, &error);
  CHECK_OK(error);
  CHECK(strcmp(rocksdb_compactionservice_scheduleresponse_get_scheduled_job_id(response, &len), "job") == 0 && len == 3);
  rocksdb_compactionservice_scheduleresponse_t_destroy(response);
  CHECK(rocksdb_compactionservice_scheduleresponse_create_with_status(999, &error) == NULL);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_compaction_service_options_override_t* override = rocksdb_compaction_service_options_override_create();
  rocksdb_compaction_service_options_override_set_option(override, "max_open_files", "5");
  rocksdb_compaction_service_options_override_destroy(override);
  unsigned char* flag = rocksdb_open_and_compact_canceled_create();
  rocksdb_open_and_compact_canceled_set(flag, 1);
  rocksdb_open_and_compact_canceled_destroy(flag);

  /* A flag that is set is 1; a level of statistics is that of statistics that are there. */
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_track_and_verify_wals_in_manifest(options, 42);
  CHECK(rocksdb_options_get_track_and_verify_wals_in_manifest(options) == 1);
  rocksdb_options_set_block_protection_bytes_per_key(options, 8);
  CHECK(rocksdb_options_get_block_protection_bytes_per_key(options) == 8);
  CHECK(rocksdb_options_get_statistics_level(options) == rocksdb_statistics_level_disable_all);
  rocksdb_options_enable_statistics(options);
  CHECK(rocksdb_options_get_statistics_level(options) != rocksdb_statistics_level_disable_all);
  rocksdb_options_destroy(options);
}

static void tailing(void) {
  char* error = NULL;
  rocksdb_options_t* options = creating();
  rocksdb_t* db = rocksdb_open(options, path, &error);
  CHECK_OK(error);
  rocksdb_readoptions_t* tail = rocksdb_readoptions_create();
  rocksdb_readoptions_set_tailing(tail, 1);
  put_row(db, "k1", "v1");
  rocksdb_iterator_t* iter = rocksdb_create_iterator(db, tail);
  rocksdb_iter_seek_to_first(iter);
  put_row(db, "k2", "v2");
  CHECK_ROW(iter, "k1", "v1");
  rocksdb_delete(db, writing, "k1", 2, &error);
  CHECK_OK(error);
  rocksdb_iter_next(iter);
  CHECK_ROW(iter, "k2", "v2");
  rocksdb_iter_next(iter);
  CHECK(!rocksdb_iter_valid(iter));
  rocksdb_iter_destroy(iter);
  rocksdb_readoptions_destroy(tail);
  rocksdb_close(db);
  rocksdb_destroy_db(options, path, &error);
  CHECK_OK(error);
  rocksdb_options_destroy(options);
}

int main(int argc, char** argv) {
  CHECK(argc == 2);
  snprintf(path, sizeof path, "%s/db", argv[1]);
  reading = rocksdb_readoptions_create();
  writing = rocksdb_writeoptions_create();
  log_file(argv[1]);
  cache_use();
  manual_compactions();
  manual_compaction_that_runs();
  compaction_of_a_dropped_family();
  tailing();
  kept_objects();
  options_files();
  rocksdb_readoptions_destroy(reading);
  rocksdb_writeoptions_destroy(writing);
  return 0;
}
