/* What a database consists of: live files, levels, files of the log, files to copy; compaction of named files, sizes, a column
   family brought out and in. */
#define _POSIX_C_SOURCE 200809L
#include <stdint.h>
#include <sys/stat.h>

#include "check.h"

static rocksdb_readoptions_t* reading;

static void fill(rocksdb_t* db, const char* first) {
  char* error = NULL;
  char key[16];
  for (int i = 0; i < 100; i++) {
    snprintf(key, sizeof key, "%s%03d", first, i);
    put(db, key, "some value that takes a few bytes");
  }
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush(db, flush, &error);
  CHECK_OK(error);
  rocksdb_flushoptions_destroy(flush);
}

static void live_files(rocksdb_t* db, const char* path) {
  size_t len = 0;
  const rocksdb_livefiles_t* files = rocksdb_livefiles(db);
  CHECK(rocksdb_livefiles_count(files) == 1);
  CHECK(strcmp(rocksdb_livefiles_column_family_name(files, 0), "default") == 0);
  CHECK(strcmp(rocksdb_livefiles_directory(files, 0), path) == 0);
  const char* name = rocksdb_livefiles_name(files, 0);
  CHECK(name[0] == '/' && strstr(name, ".sst") != NULL);
  /* An overflow run, or merged already: what has nothing below it is in the last level. */
  CHECK(rocksdb_livefiles_level(files, 0) == 0 || rocksdb_livefiles_level(files, 0) == 6);
  CHECK(rocksdb_livefiles_size(files, 0) > 0);
  CHECK(memcmp(rocksdb_livefiles_smallestkey(files, 0, &len), "key000", 6) == 0 && len == 6);
  CHECK(memcmp(rocksdb_livefiles_largestkey(files, 0, &len), "key099", 6) == 0 && len == 6);
  CHECK(rocksdb_livefiles_smallest_seqno(files, 0) > 0);
  CHECK(rocksdb_livefiles_largest_seqno(files, 0) == rocksdb_livefiles_smallest_seqno(files, 0) + 99);
  CHECK(rocksdb_livefiles_entries(files, 0) == 100 && rocksdb_livefiles_deletions(files, 0) == 0);
  CHECK(rocksdb_livefiles_name(files, 1) == NULL && rocksdb_livefiles_entries(files, -1) == 0);
  rocksdb_livefiles_destroy(files);
}

/* The name of the only file of the default column family, to be freed. */
static char* only_file(rocksdb_t* db) {
  size_t len = 0;
  rocksdb_column_family_metadata_t* all = rocksdb_get_column_family_metadata(db);
  char* name = rocksdb_column_family_metadata_get_name(all);
  CHECK(strcmp(name, "default") == 0);
  rocksdb_free(name);
  CHECK(rocksdb_column_family_metadata_get_file_count(all) == 1);
  CHECK(rocksdb_column_family_metadata_get_level_count(all) == 7);
  rocksdb_level_metadata_t* level = NULL;
  for (size_t i = 0; i < 7; i++) {
    if (level != NULL && rocksdb_level_metadata_get_file_count(level) > 0) break;
    rocksdb_level_metadata_destroy(level);
    level = rocksdb_column_family_metadata_get_level_metadata(all, i);
    CHECK(rocksdb_level_metadata_get_level(level) == (int)i);
  }
  CHECK(rocksdb_level_metadata_get_file_count(level) == 1);
  CHECK(rocksdb_level_metadata_get_size(level) == rocksdb_column_family_metadata_get_size(all));
  CHECK(rocksdb_column_family_metadata_get_level_metadata(all, 7) == NULL);
  rocksdb_column_family_metadata_destroy(all);
  CHECK(rocksdb_level_metadata_get_sst_file_metadata(level, 1) == NULL);
  rocksdb_sst_file_metadata_t* file = rocksdb_level_metadata_get_sst_file_metadata(level, 0);
  rocksdb_level_metadata_destroy(level);
  CHECK(rocksdb_sst_file_metadata_get_size(file) > 0);
  char* text = rocksdb_sst_file_metadata_get_largestkey(file, &len);
  CHECK(len == 6 && memcmp(text, "key099", 6) == 0);
  rocksdb_free(text);
  text = rocksdb_sst_file_metadata_get_smallestkey(file, &len);
  CHECK(len == 6 && memcmp(text, "key000", 6) == 0);
  rocksdb_free(text);
  text = rocksdb_sst_file_metadata_get_directory(file);
  CHECK(text != NULL && strlen(text) > 0);
  rocksdb_free(text);
  text = rocksdb_sst_file_metadata_get_relative_filename(file);
  rocksdb_sst_file_metadata_destroy(file);
  return text;
}

static void filtered(rocksdb_t* db) {
  size_t len = 7;
  const rocksdb_livefiles_t* files = rocksdb_livefiles(db);
  const int level = rocksdb_livefiles_level(files, 0);
  rocksdb_livefiles_destroy(files);
  rocksdb_column_family_metadata_options_t* options = rocksdb_column_family_metadata_options_create();
  CHECK(rocksdb_column_family_metadata_options_get_level(options) == -1);
  CHECK(rocksdb_column_family_metadata_options_get_start_key(options, &len) == NULL && len == 0);
  const struct {
    const char *start, *end;
    int level;
    size_t files;
  } wanted[] = {{NULL, NULL, -1, 1}, {"key050", NULL, -1, 1}, {"key1", NULL, -1, 0}, {NULL, "a", -1, 0},
                {"a", "z", level, 1}, {"a", "z", 6 - level, 0}};
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
    const char *start = wanted[i].start, *end = wanted[i].end;
    rocksdb_column_family_metadata_options_set_start_key(options, start, start == NULL ? 0 : strlen(start));
    rocksdb_column_family_metadata_options_set_end_key(options, end, end == NULL ? 0 : strlen(end));
    rocksdb_column_family_metadata_options_set_level(options, wanted[i].level);
    rocksdb_column_family_metadata_t* found = rocksdb_get_column_family_metadata_with_options(db, options);
    CHECK(rocksdb_column_family_metadata_get_file_count(found) == wanted[i].files);
    rocksdb_column_family_metadata_destroy(found);
  }
  CHECK(rocksdb_column_family_metadata_options_get_end_key(options, &len) != NULL && len == 1);
  rocksdb_column_family_metadata_options_destroy(options);
}

static void compacted(rocksdb_t* db) {
  char *error = NULL, **outputs = NULL;
  size_t count = 0, len = 0;
  put(db, "key050", "another value");
  char* name = only_file(db);
  const char *names[1] = {name}, *unknown[1] = {"/000077.sst"}, *output = NULL;
  rocksdb_compaction_options_t* options = rocksdb_compaction_options_create();
  rocksdb_compactionjobinfo_t* info = rocksdb_compactionjobinfo_create();
  rocksdb_compact_files(db, options, unknown, 1, 6, -1, &outputs, &count, info, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_compact_files(db, options, names, 1, 6, -1, &outputs, &count, info, &error);
  CHECK_OK(error);
  CHECK(count == 1 && strstr(outputs[0], ".sst") != NULL);
  CHECK(rocksdb_compactionjobinfo_job_id(info) > 0);
  CHECK(rocksdb_compactionjobinfo_input_files_count(info) == 1);
  CHECK(strstr(rocksdb_compactionjobinfo_input_file_at(info, 0, &len), name) != NULL && len == strlen(name) + 1);
  CHECK(rocksdb_compactionjobinfo_input_file_at(info, 1, &len) == NULL && len == 0);
  CHECK(rocksdb_compactionjobinfo_output_files_count(info) == 1);
  CHECK(memcmp(rocksdb_compactionjobinfo_cf_name(info, &len), "default", 8) == 0 && len == 7);
  CHECK(rocksdb_compaction_job_stats_is_manual_compaction(rocksdb_compactionjobinfo_stats(info)) == 1);
  CHECK(rocksdb_compaction_file_info_file_number(rocksdb_compactionjobinfo_input_file_info_at(info, 0)) > 0);
  const int from = rocksdb_compactionjobinfo_base_input_level(info);
  CHECK((from == 0 || from == 6) && rocksdb_compactionjobinfo_output_level(info) == 6);
  CHECK(rocksdb_compaction_file_info_level(rocksdb_compactionjobinfo_input_file_info_at(info, 0)) == from);
  CHECK(rocksdb_compaction_file_info_level(rocksdb_compactionjobinfo_output_file_info_at(info, 0)) == 6);
  CHECK(rocksdb_compactionjobinfo_num_input_files_at_output_level(info) == (from == 6));
  CHECK(rocksdb_compactionjobinfo_table_properties_count(info) == 2);
  output = rocksdb_compactionjobinfo_output_file_at(info, 0, &len);
  const rocksdb_table_properties_t* properties =
      rocksdb_compactionjobinfo_table_properties_for_file(info, output, len);
  CHECK(rocksdb_table_properties_num_entries(properties) == rocksdb_compactionjobinfo_output_records(info));
  CHECK(rocksdb_compactionjobinfo_compression(info) == rocksdb_lz4_compression);
  CHECK(rocksdb_compactionjobinfo_elapsed_micros(info) > 0 && rocksdb_compactionjobinfo_aborted(info) == 0);
  const rocksdb_compaction_job_stats_t* stats = rocksdb_compactionjobinfo_stats(info);
  CHECK(rocksdb_compaction_job_stats_has_accurate_num_input_records(stats) == 1);
  CHECK(rocksdb_compaction_job_stats_num_input_deletion_records(stats) == 0);
  rocksdb_compactionjobinfo_status(info, &error);
  CHECK_OK(error);
  rocksdb_compact_files_output_file_names_destroy(outputs, count);
  rocksdb_compactionjobinfo_destroy(info);
  rocksdb_compaction_options_destroy(options);
  rocksdb_free(name);
  CHECK_GET(db, reading, "key050", "another value");
}

static void sizes(rocksdb_t* db) {
  char* error = NULL;
  const char *starts[1] = {"key"}, *limits[1] = {"kez"};
  const size_t lens[1] = {3};
  uint64_t stored = 0, memory = 0, both = 0;
  char value[2000];
  memset(value, 'v', sizeof value);
  rocksdb_writeoptions_t* writing = rocksdb_writeoptions_create();
  rocksdb_put(db, writing, "key-large", 9, value, sizeof value, &error);
  CHECK_OK(error);
  rocksdb_writeoptions_destroy(writing);
  rocksdb_size_approximation_options_t* options = rocksdb_size_approximation_options_create();
  rocksdb_size_approximation_options_set_include_files(options, 1);
  rocksdb_size_approximation_options_set_include_memtables(options, 0);
  rocksdb_approximate_sizes_with_options(db, options, 1, starts, lens, limits, lens, &stored, &error);
  CHECK_OK(error);
  rocksdb_size_approximation_options_set_include_memtables(options, 1);
  rocksdb_approximate_sizes_with_options(db, options, 1, starts, lens, limits, lens, &both, &error);
  CHECK_OK(error);
  rocksdb_column_family_handle_t* cf = rocksdb_get_default_column_family_handle(db);
  rocksdb_approximate_sizes_cf_with_flags(db, cf, 1, starts, lens, limits, lens,
                                          rocksdb_size_approximation_flags_include_memtable, &memory, &error);
  CHECK_OK(error);
  CHECK(stored > 0 && memory >= sizeof value && both == stored + memory);
  rocksdb_approximate_sizes_cf_with_flags(db, cf, 1, starts, lens, limits, lens,
                                          rocksdb_size_approximation_flags_none, &memory, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_size_approximation_options_destroy(options);
  rocksdb_verify_checksum_with_options(db, reading, &error);
  CHECK_OK(error);
  rocksdb_verify_file_checksums(db, &error);
  CHECK(error != NULL && strstr(error, "file_checksum_gen_factory is null") != NULL);
  CHECK_ERROR(error, "Invalid argument: ");
}

static void log_files(rocksdb_t* db) {
  char* error = NULL;
  put(db, "in-the-log", "1");
  rocksdb_wal_files_t* files = rocksdb_get_sorted_wal_files(db, &error);
  CHECK_OK(error);
  size_t count = rocksdb_wal_files_count(files);
  CHECK(count > 0 && rocksdb_wal_files_get_wal_file(files, count) == NULL);
  for (size_t i = 1; i < count; i++)
    CHECK(rocksdb_wal_file_log_number(rocksdb_wal_files_get_wal_file(files, i - 1)) <
          rocksdb_wal_file_log_number(rocksdb_wal_files_get_wal_file(files, i)));
  const rocksdb_wal_file_t* last = rocksdb_wal_files_get_wal_file(files, count - 1);
  rocksdb_wal_file_t* current = rocksdb_get_current_wal_file(db, &error);
  CHECK_OK(error);
  CHECK(rocksdb_wal_file_log_number(last) == rocksdb_wal_file_log_number(current));
  CHECK(strstr(rocksdb_wal_file_path_name(current), ".log") != NULL);
  CHECK(rocksdb_wal_file_type(current) == rocksdb_wal_file_type_alive_log);
  CHECK(rocksdb_wal_file_size_file_bytes(current) > 0);
  CHECK(rocksdb_wal_file_start_sequence(current) <= rocksdb_get_latest_sequence_number(db));
  rocksdb_wal_file_destroy(current);
  rocksdb_wal_files_destroy(files);
}

static void copied(rocksdb_options_t* options, rocksdb_t* db, const char* path) {
  char* error = NULL;
  struct stat found;
  int types[9] = {0};
  put(db, "before", "1");
  rocksdb_livefiles_storage_info_options_t* how = rocksdb_livefiles_storage_info_options_create();
  rocksdb_livefiles_storage_info_t* info = rocksdb_get_livefiles_storage_info(db, how, &error);
  CHECK_OK(error);
  rocksdb_livefiles_storage_info_t* second = rocksdb_get_livefiles_storage_info(db, how, &error);
  CHECK_OK(error);
  put(db, "after", "2");
  size_t count = rocksdb_livefiles_storage_info_count(info);
  char* directory = strdup(rocksdb_livefiles_storage_info_directory(info, 0));
  CHECK(strcmp(directory, rocksdb_livefiles_storage_info_directory(second, 0)) != 0);
  CHECK(strcmp(directory, path) != 0);
  for (size_t i = 0; i < count; i++) {
    char* file = path_in(directory, rocksdb_livefiles_storage_info_relative_filename(info, i));
    CHECK(stat(file, &found) == 0);
    CHECK((uint64_t)found.st_size == rocksdb_livefiles_storage_info_size(info, i));
    free(file);
    types[rocksdb_livefiles_storage_info_file_type(info, i)]++;
    size_t len = 7;
    CHECK(strlen(rocksdb_livefiles_storage_info_replacement_contents(info, i, &len)) == 0 && len == 0);
    CHECK(strlen(rocksdb_livefiles_storage_info_file_checksum(info, i)) == 0);
    CHECK(rocksdb_livefiles_storage_info_trim_to_size(info, i) == 0);
  }
  CHECK(types[0] > 0 && types[2] > 0 && types[3] == 1 && types[4] == 1);
  CHECK(rocksdb_livefiles_storage_info_relative_filename(info, count) == NULL);
  /* It is a database by itself. */
  rocksdb_t* copy = rocksdb_open_for_read_only(options, directory, 0, &error);
  CHECK_OK(error);
  CHECK_GET(copy, reading, "before", "1");
  CHECK_GET(copy, reading, "after", NULL);
  rocksdb_close(copy);
  rocksdb_livefiles_storage_info_destroy(info);
  rocksdb_livefiles_storage_info_destroy(second);
  CHECK(stat(directory, &found) != 0);
  free(directory);
  rocksdb_livefiles_storage_info_options_destroy(how);
}

static void brought_out_and_in(rocksdb_options_t* options, rocksdb_t* db, const char* root) {
  char* error = NULL;
  char *directory = path_in(root, "exported"), *path = path_in(root, "imported");
  rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, &error);
  CHECK_OK(error);
  rocksdb_column_family_handle_t* cf = rocksdb_get_default_column_family_handle(db);
  rocksdb_export_import_files_metadata_t* files =
      rocksdb_checkpoint_export_column_family(checkpoint, cf, directory, &error);
  CHECK_OK(error);
  CHECK(rocksdb_checkpoint_export_column_family(checkpoint, cf, directory, &error) == NULL);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_column_family_handle_destroy(cf);
  rocksdb_checkpoint_object_destroy(checkpoint);
  char* comparator = rocksdb_export_import_files_metadata_get_db_comparator_name(files);
  CHECK(strcmp(comparator, "leveldb.BytewiseComparator") == 0);

  /* As a program does that carries the list elsewhere: made again, file by file. */
  rocksdb_livefiles_t *list = rocksdb_export_import_files_metadata_get_files(files), *made = rocksdb_livefiles_create();
  CHECK(rocksdb_livefiles_count(list) == 1 && rocksdb_livefiles_size(list, 0) > 100);
  CHECK(strcmp(rocksdb_livefiles_column_family_name(list, 0), "") == 0 && rocksdb_livefiles_entries(list, 0) == 0);
  size_t key_len = 0;
  CHECK(rocksdb_livefiles_smallestkey(list, 0, &key_len) != NULL && key_len > 0);
  rocksdb_livefile_t* file = rocksdb_livefile_create();
  rocksdb_livefile_set_column_family_name(file, rocksdb_livefiles_column_family_name(list, 0));
  rocksdb_livefile_set_name(file, rocksdb_livefiles_name(list, 0));
  rocksdb_livefile_set_directory(file, rocksdb_livefiles_directory(list, 0));
  rocksdb_livefile_set_level(file, 3);
  rocksdb_livefile_set_size(file, rocksdb_livefiles_size(list, 0));
  rocksdb_livefile_set_smallest_key(file, "a", 1);
  rocksdb_livefile_set_largest_key(file, "z", 1);
  rocksdb_livefile_set_smallest_seqno(file, 5);
  rocksdb_livefile_set_largest_seqno(file, 9);
  rocksdb_livefile_set_num_entries(file, 11);
  rocksdb_livefile_set_num_deletions(file, 2);
  rocksdb_livefiles_add(made, file);
  rocksdb_livefile_destroy(file);
  CHECK(rocksdb_livefiles_level(made, 0) == 3 && rocksdb_livefiles_largest_seqno(made, 0) == 9);
  CHECK(rocksdb_livefiles_entries(made, 0) == 11 && rocksdb_livefiles_deletions(made, 0) == 2);
  rocksdb_export_import_files_metadata_t* carried = rocksdb_export_import_files_metadata_create();
  rocksdb_t* other = open_new(options, path);
  rocksdb_import_column_family_options_t* how = rocksdb_import_column_family_options_create();
  CHECK(rocksdb_create_column_family_with_import(other, options, "in", how, carried, &error) == NULL);
  CHECK_ERROR(error, "Invalid argument: Comparator name mismatch");
  rocksdb_export_import_files_metadata_set_db_comparator_name(carried, comparator);
  CHECK(rocksdb_create_column_family_with_import(other, options, "in", how, carried, &error) == NULL);
  CHECK_ERROR(error, "Invalid argument: ");
  rocksdb_export_import_files_metadata_set_files(carried, made);
  rocksdb_column_family_handle_t* in =
      rocksdb_create_column_family_with_import(other, options, "in", how, carried, &error);
  CHECK_OK(error);
  CHECK_GET_CF(other, reading, in, "key007", "some value that takes a few bytes");
  rocksdb_import_column_family_options_set_move_files(how, 1);
  rocksdb_column_family_handle_t* moved =
      rocksdb_create_column_family_with_import(other, options, "moved", how, carried, &error);
  CHECK_OK(error);
  CHECK_GET_CF(other, reading, moved, "key007", "some value that takes a few bytes");
  CHECK(rocksdb_create_column_family_with_import(other, options, "gone", how, carried, &error) == NULL);
  CHECK_ERROR(error, "IO error: No such file or directory");
  /* What failed left no column family. */
  rocksdb_column_family_handle_t* again = rocksdb_create_column_family(other, options, "gone", &error);
  CHECK_OK(error);

  rocksdb_column_family_handle_destroy(again);
  rocksdb_column_family_handle_destroy(in);
  rocksdb_column_family_handle_destroy(moved);
  rocksdb_import_column_family_options_destroy(how);
  rocksdb_export_import_files_metadata_destroy(files);
  rocksdb_export_import_files_metadata_destroy(carried);
  rocksdb_livefiles_destroy(list);
  rocksdb_livefiles_destroy(made);
  rocksdb_free(comparator);
  rocksdb_close(other);
  free(directory);
  free(path);
}

static void changed_options(rocksdb_t* db) {
  char* error = NULL;
  const char *names[1] = {"compression"}, *values[1] = {"kNoCompression"};
  const char *fixed[1] = {"num_levels"}, *sevens[1] = {"7"};
  const char *of_databases[1] = {"max_background_jobs"}, *unknown[1] = {"nonsense"};
  rocksdb_set_options(db, 1, names, values, &error);
  CHECK_OK(error);
  rocksdb_set_options(db, 1, fixed, sevens, &error);
  CHECK_ERROR(error, "Invalid argument: Option not changeable: num_levels");
  rocksdb_set_options(db, 1, of_databases, sevens, &error);
  CHECK_ERROR(error, "Invalid argument: Could not find option: max_background_jobs");
  rocksdb_set_db_options(db, 1, of_databases, sevens, &error);
  CHECK_OK(error);
  rocksdb_set_db_options(db, 1, names, values, &error);
  CHECK_ERROR(error, "Invalid argument: Option not changeable: compression");
  rocksdb_set_db_options(db, 1, unknown, sevens, &error);
  CHECK_ERROR(error, "Invalid argument: Could not find option: nonsense");
  /* What is written from now on is not compressed: what is very even takes its room. */
  const rocksdb_livefiles_t* files = rocksdb_livefiles(db);
  size_t before = rocksdb_livefiles_size(files, 0);
  rocksdb_livefiles_destroy(files);
  char value[50000];
  memset(value, 'v', sizeof value);
  rocksdb_writeoptions_t* writing = rocksdb_writeoptions_create();
  rocksdb_put(db, writing, "zzz", 3, value, sizeof value, &error);
  CHECK_OK(error);
  rocksdb_writeoptions_destroy(writing);
  fill(db, "key");
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  files = rocksdb_livefiles(db);
  CHECK(rocksdb_livefiles_size(files, 0) > before + sizeof value);
  rocksdb_livefiles_destroy(files);
}

static void property_is(rocksdb_t* db, const char* property, const char* expected) {
  char* value = rocksdb_property_value(db, property);
  CHECK(value != NULL && strcmp(value, expected) == 0);
  rocksdb_free(value);
}

/* Levels are numbered from the bottom, or from the top where the option says so: in every place alike. */
static void numbered(const char* path, unsigned char is_dynamic, int levels, int expected) {
  char *error = NULL, property[64], base[8];
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_level_compaction_dynamic_level_bytes(options, is_dynamic);
  rocksdb_options_set_num_levels(options, levels);
  rocksdb_t* db = open_new(options, path);
  snprintf(base, sizeof base, "%d", expected);
  property_is(db, "rocksdb.base-level", base);
  fill(db, "key");
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  const rocksdb_livefiles_t* files = rocksdb_livefiles(db);
  CHECK(rocksdb_livefiles_count(files) == 1 && rocksdb_livefiles_level(files, 0) == expected);
  rocksdb_livefiles_destroy(files);
  property_is(db, "rocksdb.base-level", base);
  for (int i = 0; i < 7; i++) {
    snprintf(property, sizeof property, "rocksdb.num-files-at-level%d", i);
    property_is(db, property, i == expected ? "1" : "0");
  }
  rocksdb_column_family_metadata_t* all = rocksdb_get_column_family_metadata(db);
  rocksdb_level_metadata_t* level = rocksdb_column_family_metadata_get_level_metadata(all, (size_t)expected);
  CHECK(rocksdb_level_metadata_get_level(level) == expected && rocksdb_level_metadata_get_file_count(level) == 1);
  rocksdb_level_metadata_destroy(level);
  rocksdb_column_family_metadata_destroy(all);
  char* stats = rocksdb_property_value(db, "rocksdb.levelstats");
  snprintf(property, sizeof property, "\n%3d %8d ", expected, 1);
  CHECK(strstr(stats, property) != NULL);
  rocksdb_free(stats);
  rocksdb_close(db);
  rocksdb_destroy_db(options, path, &error);
  CHECK_OK(error);
  rocksdb_options_destroy(options);
}

static void is_alone_at(rocksdb_t* db, int level) {
  const rocksdb_livefiles_t* files = rocksdb_livefiles(db);
  CHECK(rocksdb_livefiles_count(files) == 1 && rocksdb_livefiles_level(files, 0) == level);
  rocksdb_livefiles_destroy(files);
}

/* What is compacted is where it stays: more than level 1 should have is in level 2 when the call returns. */
static void deepened(const char* path) {
  char *error = NULL, key[16], value[100];
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_level_compaction_dynamic_level_bytes(options, 0);
  rocksdb_options_set_max_bytes_for_level_base(options, 64 << 10);
  rocksdb_t* db = open_new(options, path);
  rocksdb_writeoptions_t* writing = rocksdb_writeoptions_create();
  unsigned noise = 1;
  for (int i = 0; i < 3000; i++) {
    for (size_t at = 0; at < sizeof value; at++) value[at] = (char)((noise = noise * 1103515245u + 12345u) >> 24);
    snprintf(key, sizeof key, "key%05d", i);
    rocksdb_put(db, writing, key, strlen(key), value, sizeof value, &error);
    CHECK_OK(error);
  }
  rocksdb_writeoptions_destroy(writing);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  is_alone_at(db, 2);
  rocksdb_close(db);
  db = rocksdb_open(options, path, &error);
  CHECK_OK(error);
  is_alone_at(db, 2);
  wait_for_compactions(db);
  is_alone_at(db, 2);
  rocksdb_close(db);
  rocksdb_destroy_db(options, path, &error);
  CHECK_OK(error);
  rocksdb_options_destroy(options);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  char* path = path_in(arguments[1], "db");
  reading = rocksdb_readoptions_create();
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_t* db = open_new(options, path);
  CHECK(rocksdb_livefiles_count(NULL) == 0);
  fill(db, "key");
  live_files(db, path);
  /* The file lies where it stays, so that its level can be asked for. */
  wait_for_compactions(db);
  filtered(db);
  compacted(db);
  /* Several calls see the same files. */
  wait_for_compactions(db);
  sizes(db);
  log_files(db);
  copied(options, db, path);
  brought_out_and_in(options, db, arguments[1]);
  changed_options(db);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  rocksdb_readoptions_destroy(reading);
  free(path);
  path = path_in(arguments[1], "numbered");
  numbered(path, 1, 7, 6);
  numbered(path, 1, 4, 3);
  numbered(path, 0, 7, 1);
  deepened(path);
  free(path);
  return 0;
}
