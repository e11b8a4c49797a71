/* Event listeners: what they are told of flushes, compactions, files that come in; their destructor; values of one key each. */
#include <stdint.h>

#include "check.h"

typedef struct State {
  rocksdb_t** db;
  int flushes_begun, flushes, compactions_begun, compactions, asked_compactions, ingested, sealed, destroyed;
  uint64_t entries_flushed, entries_sealed;
  char path[256];
} State;

static void destroyed(void* state) { ((State*)state)->destroyed++; }

static void flush_begun(void* state, rocksdb_t* db, const rocksdb_flushjobinfo_t* info) {
  State* told = state;
  size_t len = 0;
  CHECK(db == *told->db);
  CHECK(strcmp(rocksdb_flushjobinfo_cf_name(info, &len), "default") == 0 && len == 7);
  told->flushes_begun++;
}

static void flushed(void* state, rocksdb_t* db, const rocksdb_flushjobinfo_t* info) {
  State* told = state;
  size_t len = 0;
  CHECK(db == *told->db);
  const rocksdb_table_properties_t* properties = rocksdb_flushjobinfo_table_properties(info);
  told->entries_flushed += rocksdb_table_properties_num_entries(properties);
  CHECK(strcmp(rocksdb_table_properties_column_family_name(properties, &len), "default") == 0 && len == 7);
  CHECK(strcmp(rocksdb_table_properties_comparator_name(properties, &len), "leveldb.BytewiseComparator") == 0);
  CHECK(rocksdb_table_properties_data_size(properties) > 0 && rocksdb_table_properties_num_data_blocks(properties) > 0);
  CHECK(rocksdb_table_properties_user_collected_properties_count(properties) == 0);
  CHECK(rocksdb_table_properties_user_collected_properties_key_at(properties, 0, &len) == NULL && len == 0);
  CHECK(rocksdb_flushjobinfo_cf_id(info) == 0 && rocksdb_flushjobinfo_job_id(info) > 0);
  CHECK(rocksdb_flushjobinfo_file_number(info) > 0);
  CHECK(strstr(rocksdb_flushjobinfo_file_path(info, &len), ".sst") != NULL);
  CHECK(rocksdb_flushjobinfo_smallest_seqno(info) > 0);
  CHECK(rocksdb_flushjobinfo_smallest_seqno(info) <= rocksdb_flushjobinfo_largest_seqno(info));
  /* By a call of flush; that of a compaction may come behind. */
  const uint32_t reason = rocksdb_flushjobinfo_flush_reason(info);
  CHECK(reason == 10 || (told->flushes >= 3 && (reason == 4 || reason == 6)));
  CHECK(rocksdb_flushjobinfo_blob_file_addition_infos_count(info) == 0);
  CHECK(rocksdb_flushjobinfo_blob_file_addition_info_at(info, 0) == NULL);
  told->flushes++;
}

static void compaction_begun(void* state, rocksdb_t* db, const rocksdb_compactionjobinfo_t* info) {
  State* told = state;
  CHECK(db == *told->db && rocksdb_compactionjobinfo_input_files_count(info) > 0);
  CHECK(rocksdb_compactionjobinfo_compaction_reason(info) > 0);
  told->asked_compactions += rocksdb_compactionjobinfo_compaction_reason(info) == 9;
  told->compactions_begun++;
}

static void compacted(void* state, rocksdb_t* db, const rocksdb_compactionjobinfo_t* info) {
  State* told = state;
  char* error = NULL;
  size_t len = 0;
  CHECK(db == *told->db);
  rocksdb_compactionjobinfo_status(info, &error);
  CHECK_OK(error);
  told->compactions++;
  CHECK(rocksdb_compactionjobinfo_output_level(info) > 0);
  size_t count = rocksdb_compactionjobinfo_output_files_count(info);
  size_t inputs = rocksdb_compactionjobinfo_input_files_count(info);
  CHECK(inputs > 0 && rocksdb_compactionjobinfo_table_properties_count(info) >= inputs);
  CHECK(inputs == rocksdb_compactionjobinfo_input_file_infos_count(info));
  const char* input = rocksdb_compactionjobinfo_input_file_at(info, 0, &len);
  CHECK(rocksdb_compactionjobinfo_table_properties_for_file(info, input, len) ==
        rocksdb_compactionjobinfo_table_properties_value_at(info, 0));
  for (size_t i = 0; i < count; i++) {
    const char* name = rocksdb_compactionjobinfo_output_file_at(info, i, &len);
    const rocksdb_table_properties_t* properties =
        rocksdb_compactionjobinfo_table_properties_for_file(info, name, len);
    CHECK(rocksdb_table_properties_num_entries(properties) > 0);
    CHECK(rocksdb_compaction_file_info_level(rocksdb_compactionjobinfo_output_file_info_at(info, i)) ==
          rocksdb_compactionjobinfo_output_level(info));
  }
  CHECK(rocksdb_compactionjobinfo_table_properties_for_file(info, "no", 2) == NULL);
  const rocksdb_compaction_job_stats_t* stats = rocksdb_compactionjobinfo_stats(info);
  CHECK(rocksdb_compaction_job_stats_num_input_records(stats) == rocksdb_compactionjobinfo_input_records(info));
}

static void never(void* state, const rocksdb_subcompactionjobinfo_t* info) {
  (void)state, (void)info;
  CHECK(0);
}

static void came_in(void* state, rocksdb_t* db, const rocksdb_externalfileingestioninfo_t* info) {
  State* told = state;
  size_t len = 0;
  CHECK(db == *told->db);
  CHECK(strcmp(rocksdb_externalfileingestioninfo_external_file_path(info, &len), told->path) == 0);
  CHECK(rocksdb_externalfileingestioninfo_global_seqno(info) > 0);
  const rocksdb_table_properties_t* counts = rocksdb_externalfileingestioninfo_table_properties(info);
  CHECK(rocksdb_table_properties_num_entries(counts) == 3);
  CHECK(rocksdb_table_properties_num_range_deletions(counts) == 1);
  told->ingested++;
}

static void failed(void* state, uint32_t reason, rocksdb_status_ptr_t* status) {
  (void)state, (void)reason;
  char* error = NULL;
  rocksdb_status_ptr_get_error(status, &error);
  CHECK_OK(error);
}

static void stalled(void* state, const rocksdb_writestallinfo_t* info) {
  (void)state;
  CHECK(*(const int*)rocksdb_writestallinfo_cur(info) != *(const int*)rocksdb_writestallinfo_prev(info));
}

static void sealed(void* state, const rocksdb_memtableinfo_t* info) {
  State* told = state;
  told->entries_sealed += rocksdb_memtableinfo_num_entries(info);
  CHECK(rocksdb_memtableinfo_first_seqno(info) > 0);
  told->sealed++;
}

static rocksdb_eventlistener_t* listener(State* state) {
  return rocksdb_eventlistener_create(state, destroyed, flush_begun, flushed, compaction_begun, compacted, never, never,
                                      came_in, failed, stalled, sealed);
}

static void ingest(rocksdb_options_t* options, rocksdb_t* db, const char* path) {
  char* error = NULL;
  rocksdb_envoptions_t* env = rocksdb_envoptions_create();
  rocksdb_ingestexternalfileoptions_t* how = rocksdb_ingestexternalfileoptions_create();
  rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(env, options);
  rocksdb_sstfilewriter_open(writer, path, &error);
  CHECK_OK(error);
  rocksdb_sstfilewriter_put(writer, "x", 1, "1", 1, &error);
  CHECK_OK(error);
  rocksdb_sstfilewriter_merge(writer, "y", 1, "1", 1, &error);
  CHECK_ERROR(error, "Not implemented: ");
  rocksdb_sstfilewriter_delete_range(writer, "y", 1, "z", 1, &error);
  CHECK_OK(error);
  rocksdb_sstfilewriter_put(writer, "y", 1, "2", 1, &error);
  CHECK_OK(error);
  rocksdb_sstfilewriter_finish(writer, &error);
  CHECK_OK(error);
  rocksdb_ingest_external_file(db, &path, 1, how, &error);
  CHECK_OK(error);
  rocksdb_sstfilewriter_destroy(writer);
  rocksdb_ingestexternalfileoptions_destroy(how);
  rocksdb_envoptions_destroy(env);
}

/* Values and errors of several keys in one object. */
static void pinned(rocksdb_t* db, const rocksdb_readoptions_t* reading) {
  const rocksdb_slice_t keys[3] = {{"x", 1}, {"absent", 6}, {"empty", 5}};
  const char *value = NULL, *error = NULL;
  size_t value_len = 0, error_len = 0;
  put(db, "empty", "");
  rocksdb_column_family_handle_t* cf = rocksdb_get_default_column_family_handle(db);
  rocksdb_pinnable_multi_get_t* many = rocksdb_batched_multi_get_pinned_cf(db, reading, cf, 3, keys, 0);
  CHECK(rocksdb_pinnable_multi_get_count(many) == 3);
  CHECK(rocksdb_pinnable_multi_get_result(many, 0, &value, &value_len, &error, &error_len) ==
        rocksdb_pinnable_multi_get_found);
  CHECK(value_len == 1 && value[0] == '1' && error == NULL && error_len == 0);
  CHECK(rocksdb_pinnable_multi_get_result(many, 1, &value, &value_len, &error, &error_len) ==
        rocksdb_pinnable_multi_get_not_found);
  CHECK(value == NULL && value_len == 0);
  CHECK(rocksdb_pinnable_multi_get_result(many, 2, &value, &value_len, &error, &error_len) ==
        rocksdb_pinnable_multi_get_found);
  CHECK(value != NULL && value_len == 0);
  CHECK(rocksdb_pinnable_multi_get_result(many, 3, &value, &value_len, &error, &error_len) ==
        rocksdb_pinnable_multi_get_out_of_bounds);
  CHECK(value == NULL);
  rocksdb_pinnable_multi_get_destroy(many);
  many = rocksdb_batched_multi_get_pinned_cf(db, reading, NULL, 3, keys, 0);
  CHECK(rocksdb_pinnable_multi_get_result(many, 1, &value, &value_len, &error, &error_len) ==
        rocksdb_pinnable_multi_get_error);
  CHECK(value == NULL && error_len > 17 && memcmp(error, "Invalid argument: ", 18) == 0);
  rocksdb_pinnable_multi_get_destroy(many);
  rocksdb_column_family_handle_destroy(cf);
}

/* Values of one object stay while others, and handles of single values, come and go on the thread: each has its
   own, though memory of those that were destroyed is used again. */
static void several_pinned(rocksdb_t* db, const rocksdb_readoptions_t* reading) {
  const rocksdb_slice_t first_keys[2] = {{"s1", 2}, {"s2", 2}}, second_keys[2] = {{"s2", 2}, {"none", 4}};
  const char *value = NULL, *error = NULL;
  size_t value_len = 0, error_len = 0;
  put(db, "s1", "first");
  put(db, "s2", "second");
  rocksdb_column_family_handle_t* cf = rocksdb_get_default_column_family_handle(db);
  rocksdb_pinnable_multi_get_destroy(rocksdb_batched_multi_get_pinned_cf(db, reading, cf, 2, first_keys, 0));
  rocksdb_pinnable_multi_get_t* first = rocksdb_batched_multi_get_pinned_cf(db, reading, cf, 2, first_keys, 0);
  put(db, "s1", "changed");
  rocksdb_pinnable_multi_get_t* second = rocksdb_batched_multi_get_pinned_cf(db, reading, cf, 2, second_keys, 0);
  CHECK(rocksdb_pinnable_multi_get_result(second, 0, &value, &value_len, &error, &error_len) ==
        rocksdb_pinnable_multi_get_found);
  CHECK(value_len == 6 && memcmp(value, "second", 6) == 0);
  CHECK(rocksdb_pinnable_multi_get_result(second, 1, &value, &value_len, &error, &error_len) ==
        rocksdb_pinnable_multi_get_not_found);
  rocksdb_pinnable_multi_get_destroy(second);
  rocksdb_pinnable_multi_get_destroy(rocksdb_batched_multi_get_pinned_cf(db, reading, cf, 2, second_keys, 0));
  CHECK(rocksdb_pinnable_multi_get_count(first) == 2);
  CHECK(rocksdb_pinnable_multi_get_result(first, 0, &value, &value_len, &error, &error_len) ==
        rocksdb_pinnable_multi_get_found);
  CHECK(value_len == 5 && memcmp(value, "first", 5) == 0);
  CHECK(rocksdb_pinnable_multi_get_result(first, 1, &value, &value_len, &error, &error_len) ==
        rocksdb_pinnable_multi_get_found);
  CHECK(value_len == 6 && memcmp(value, "second", 6) == 0);
  rocksdb_pinnable_multi_get_destroy(first);
  rocksdb_column_family_handle_destroy(cf);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  char* error = NULL;
  char *path = path_in(arguments[1], "db"), *file = path_in(arguments[1], "file");
  rocksdb_t* db = NULL;
  State state = {.db = &db};
  snprintf(state.path, sizeof state.path, "%s", file);
  rocksdb_eventlistener_destroy(listener(&state));
  CHECK(state.destroyed == 1);
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_readoptions_t* reading = rocksdb_readoptions_create();
  rocksdb_options_add_eventlistener(options, listener(&state));
  db = open_new(options, path);
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flushoptions_set_listener_wait(flush, 1);
  uint64_t written = 0;
  for (int round = 1; round <= 3; round++) {
    char key[8];
    for (int i = 0; i < round; i++, written++) {
      snprintf(key, sizeof key, "k%d", i);
      put(db, key, "v");
    }
    rocksdb_flush(db, flush, &error);
    CHECK_OK(error);
    CHECK(state.flushes == round && state.entries_flushed == written);
    CHECK(state.sealed == round && state.entries_sealed == written);
  }
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  CHECK(state.asked_compactions > 0);
  ingest(options, db, file);
  CHECK(state.ingested == 1);
  pinned(db, reading);
  several_pinned(db, reading);
  rocksdb_readoptions_destroy(reading);
  rocksdb_options_destroy(options);
  CHECK(state.destroyed == 1);
  rocksdb_close(db);
  /* Everything is told before a close returns. */
  CHECK(state.flushes_begun >= state.flushes && state.compactions_begun >= state.compactions);
  CHECK(state.compactions > 0);
  CHECK(state.destroyed == 2);
  rocksdb_flushoptions_destroy(flush);
  free(path);
  free(file);
  return 0;
}
