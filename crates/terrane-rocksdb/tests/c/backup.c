/* Backups: made, listed with their metadata, verified, purged, restored over what is there and beside other files. */
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static rocksdb_readoptions_t* reading;

static void told(void* count) { ++*(int*)count; }

static unsigned char never(void* count, const char* name, size_t len) {
  (void)count, (void)name, (void)len;
  CHECK(0);
  return 0;
}

static void make(rocksdb_backup_engine_t* engine, rocksdb_t* db, int* progress) {
  char* error = NULL;
  uint32_t id = 0;
  put(db, "k", "first");
  rocksdb_backup_engine_create_new_backup(engine, db, &error);
  CHECK_OK(error);
  put(db, "k", "second");
  rocksdb_backup_engine_create_new_backup_flush(engine, db, 1, &error);
  CHECK_OK(error);
  rocksdb_create_backup_options_t* options = rocksdb_create_backup_options_create();
  rocksdb_create_backup_options_set_flush_before_backup(options, 1);
  rocksdb_create_backup_options_set_progress_callback(options, progress, told);
  rocksdb_create_backup_options_set_exclude_files_callback(options, NULL, never);
  put(db, "k", "third");
  rocksdb_backup_engine_create_new_backup_with_metadata(engine, db, options, "a\0b\xff", 4, &id, &error);
  CHECK_OK(error);
  CHECK(id == 3 && *progress > 0);
  put(db, "k", "fourth");
  rocksdb_backup_engine_create_new_backup_with_options(engine, db, options, &id, &error);
  CHECK_OK(error);
  CHECK(id == 4);
  rocksdb_create_backup_options_destroy(options);
}

static void listed(rocksdb_backup_engine_t* engine) {
  size_t len = 7;
  const rocksdb_backup_engine_info_t* infos = rocksdb_backup_engine_get_backup_info(engine);
  CHECK(rocksdb_backup_engine_info_count(infos) == 4);
  for (int at = 0; at < 4; at++) {
    CHECK(rocksdb_backup_engine_info_backup_id(infos, at) == (uint32_t)at + 1);
    CHECK(rocksdb_backup_engine_info_timestamp(infos, at) > 1500000000);
    CHECK(rocksdb_backup_engine_info_size(infos, at) > 0);
  }
  /* A manifest and the journal; a manifest and an extent. */
  CHECK(rocksdb_backup_engine_info_number_files(infos, 0) == 2);
  CHECK(rocksdb_backup_engine_info_number_files(infos, 3) >= 2);
  const char* metadata = rocksdb_backup_engine_info_app_metadata(infos, 2, &len);
  CHECK(len == 4 && memcmp(metadata, "a\0b\xff", 4) == 0);
  metadata = rocksdb_backup_engine_info_app_metadata(infos, 1, &len);
  CHECK(metadata != NULL && len == 0);
  CHECK(rocksdb_backup_engine_info_app_metadata(infos, 4, &len) == NULL);
  CHECK(rocksdb_backup_engine_info_backup_id(infos, -1) == 0);
  rocksdb_backup_engine_info_destroy(infos);
}

static void restored(rocksdb_backup_engine_t* engine, rocksdb_options_t* options, const char* path) {
  char* error = NULL;
  rocksdb_restore_options_t* how = rocksdb_restore_options_create();
  rocksdb_backup_engine_restore_db_from_backup(engine, path, path, how, 2, &error);
  CHECK_OK(error);
  rocksdb_t* db = rocksdb_open(options, path, &error);
  CHECK_OK(error);
  CHECK_GET(db, reading, "k", "second");
  rocksdb_backup_engine_restore_db_from_latest_backup(engine, path, path, how, &error);
  CHECK_ERROR(error, "IO error: While lock file");
  CHECK_GET(db, reading, "k", "second");
  rocksdb_close(db);

  /* Another file in the directory stays. */
  char* alien = path_in(path, "alien");
  FILE* file = fopen(alien, "w");
  CHECK(file != NULL);
  fclose(file);
  rocksdb_backup_engine_restore_db_from_latest_backup(engine, path, path, how, &error);
  CHECK_OK(error);
  db = rocksdb_open(options, path, &error);
  CHECK_OK(error);
  CHECK_GET(db, reading, "k", "fourth");
  rocksdb_close(db);
  file = fopen(alien, "r");
  CHECK(file != NULL);
  fclose(file);
  free(alien);

  /* What is in the way of a restore is not removed. */
  char name[4096];
  snprintf(name, sizeof name, "%s.restored", path);
  file = fopen(name, "w");
  CHECK(file != NULL);
  fclose(file);
  rocksdb_backup_engine_restore_db_from_latest_backup(engine, path, path, how, &error);
  CHECK_ERROR(error, "Invalid argument: ");
  CHECK(remove(name) == 0);

  rocksdb_backup_engine_restore_db_from_backup(engine, path, path, how, 77, &error);
  CHECK_ERROR(error, "NotFound: ");
  CHECK(fopen(name, "r") == NULL);
  rocksdb_restore_options_set_keep_log_files(how, 1);
  rocksdb_backup_engine_restore_db_from_latest_backup(engine, path, path, how, &error);
  CHECK_ERROR(error, "Not implemented: keep_log_files");
  rocksdb_restore_options_destroy(how);
}

static void damaged(rocksdb_backup_engine_t* engine, const char* place) {
  char* error = NULL;
  rocksdb_backup_engine_verify_backup(engine, 4, &error);
  CHECK_OK(error);
  rocksdb_backup_engine_verify_backup(engine, 77, &error);
  CHECK_ERROR(error, "NotFound: ");
  char* manifest = path_in(place, "backups/000004");
  FILE* file = fopen(manifest, "r+");
  CHECK(file != NULL && fseek(file, 60, SEEK_SET) == 0 && fputc(0x5a, file) != EOF);
  fclose(file);
  rocksdb_backup_engine_verify_backup(engine, 4, &error);
  CHECK_ERROR(error, "Corruption: ");
  free(manifest);
}

static void stopped(rocksdb_backup_engine_t* engine, rocksdb_t* db) {
  char* error = NULL;
  rocksdb_backup_engine_stop_backup(engine);
  rocksdb_backup_engine_create_new_backup(engine, db, &error);
  CHECK_ERROR(error, "Result incomplete: Backup stopped");
}

/* Backups in the directory of the database itself. */
static void inside(rocksdb_options_t* options, const char* path, const char* copy) {
  char* error = NULL;
  rocksdb_t* db = open_new(options, path);
  put(db, "k", "inside");
  rocksdb_backup_engine_t* engine = rocksdb_backup_engine_open(options, path, &error);
  CHECK_OK(error);
  rocksdb_backup_engine_create_new_backup(engine, db, &error);
  CHECK_OK(error);
  rocksdb_backup_engine_close(engine);
  rocksdb_close(db);
  /* They stay when the database goes, and are found where they are. */
  rocksdb_destroy_db(options, path, &error);
  CHECK_OK(error);
  engine = rocksdb_backup_engine_open(options, path, &error);
  CHECK_OK(error);
  rocksdb_restore_options_t* how = rocksdb_restore_options_create();
  rocksdb_backup_engine_restore_db_from_latest_backup(engine, copy, copy, how, &error);
  CHECK_OK(error);
  rocksdb_restore_options_destroy(how);
  rocksdb_backup_engine_close(engine);
  db = rocksdb_open(options, copy, &error);
  CHECK_OK(error);
  CHECK_GET(db, reading, "k", "inside");
  rocksdb_close(db);
}

/* A database that comes into the directory of backups does not have them vanish from sight. */
static void overtaken(rocksdb_options_t* options, const char* root) {
  static const char* parts[] = {"backups", "extents", "segments"};
  char* error = NULL;
  char *path = path_in(root, "overtaken"), *source = path_in(root, "source");
  rocksdb_t* db = open_new(options, source);
  put(db, "k", "v");
  rocksdb_backup_engine_t* engine = rocksdb_backup_engine_open(options, path, &error);
  CHECK_OK(error);
  rocksdb_backup_engine_create_new_backup(engine, db, &error);
  CHECK_OK(error);
  rocksdb_backup_engine_close(engine);
  rocksdb_close(db);
  rocksdb_close(open_new(options, path));
  CHECK(rocksdb_backup_engine_open(options, path, &error) == NULL);
  CHECK(error != NULL && strstr(error, "/backup_engine") != NULL);
  CHECK_ERROR(error, "Invalid argument: ");
  /* Moved where the text says they are found. */
  char from[4096], to[4096];
  snprintf(to, sizeof to, "%s/backup_engine", path);
  CHECK(mkdir(to, 0700) == 0);
  for (int i = 0; i < 3; i++) {
    snprintf(from, sizeof from, "%s/%s", path, parts[i]);
    snprintf(to, sizeof to, "%s/backup_engine/%s", path, parts[i]);
    if (access(from, F_OK) == 0) CHECK(rename(from, to) == 0);
  }
  engine = rocksdb_backup_engine_open(options, path, &error);
  CHECK_OK(error);
  const rocksdb_backup_engine_info_t* infos = rocksdb_backup_engine_get_backup_info(engine);
  CHECK(rocksdb_backup_engine_info_count(infos) == 1);
  rocksdb_backup_engine_info_destroy(infos);
  rocksdb_backup_engine_close(engine);
  free(path);
  free(source);
}

static void in_memory(void) {
  char* error = NULL;
  rocksdb_env_t* env = rocksdb_create_mem_env();
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_env(options, env);
  rocksdb_t* db = open_new(options, "/in-memory");
  put(db, "k", "kept");
  rocksdb_backup_engine_t* engine = rocksdb_backup_engine_open(options, "/backups", &error);
  CHECK_OK(error);
  const rocksdb_backup_engine_info_t* infos = rocksdb_backup_engine_get_backup_info(engine);
  CHECK(rocksdb_backup_engine_info_count(infos) == 0);
  rocksdb_backup_engine_info_destroy(infos);
  rocksdb_backup_engine_purge_old_backups(engine, 1, &error);
  CHECK_OK(error);
  rocksdb_restore_options_t* how = rocksdb_restore_options_create();
  rocksdb_backup_engine_restore_db_from_latest_backup(engine, "/restored", "/restored", how, &error);
  CHECK_ERROR(error, "NotFound: ");
  rocksdb_backup_engine_create_new_backup(engine, db, &error);
  CHECK_OK(error);
  rocksdb_backup_engine_restore_db_from_latest_backup(engine, "/restored", "/restored", how, &error);
  CHECK_OK(error);
  rocksdb_restore_options_destroy(how);
  rocksdb_t* second = rocksdb_open(options, "/restored", &error);
  CHECK_OK(error);
  CHECK_GET(second, reading, "k", "kept");
  rocksdb_close(second);
  rocksdb_backup_engine_close(engine);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  rocksdb_env_destroy(env);
}

int main(int count, char** arguments) {
  CHECK(count == 2);
  char* error = NULL;
  int progress = 0;
  size_t len = 0, before_len = 0, after_len = 0;
  char *path = path_in(arguments[1], "db"), *place = path_in(arguments[1], "backups");
  char* copy = path_in(arguments[1], "copy");
  reading = rocksdb_readoptions_create();
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_t* db = open_new(options, path);
  rocksdb_backup_engine_options_t* engine_options = rocksdb_backup_engine_options_create("elsewhere");
  rocksdb_backup_engine_options_set_backup_dir(engine_options, place);
  CHECK(strcmp(rocksdb_backup_engine_options_get_backup_dir(engine_options, &len), place) == 0 && len == strlen(place));
  rocksdb_backup_engine_options_set_callback_trigger_interval_size(engine_options, 1);
  rocksdb_env_t* env = rocksdb_create_default_env();
  rocksdb_backup_engine_options_set_env(engine_options, env);
  rocksdb_ratelimiter_t* limiter = rocksdb_ratelimiter_create(1 << 30, 100000, 10);
  rocksdb_backup_engine_options_set_backup_rate_limiter(engine_options, limiter);
  rocksdb_backup_engine_options_set_restore_rate_limiter(engine_options, limiter);
  rocksdb_ratelimiter_destroy(limiter);
  rocksdb_backup_engine_t* engine = rocksdb_backup_engine_open_opts(engine_options, env, &error);
  CHECK_OK(error);
  make(engine, db, &progress);
  listed(engine);
  char* before = rocksdb_get_db_identity(db, &before_len);
  CHECK(before_len == 36 && strlen(before) == 36);
  restored(engine, options, copy);
  rocksdb_t* second = rocksdb_open(options, copy, &error);
  CHECK_OK(error);
  char* after = rocksdb_get_db_identity(second, &after_len);
  CHECK(after_len == 36 && strcmp(before, after) != 0);
  rocksdb_close(second);
  rocksdb_free(before);
  rocksdb_free(after);
  damaged(engine, place);
  stopped(engine, db);
  rocksdb_backup_engine_close(engine);

  engine = rocksdb_backup_engine_open(options, place, &error);
  CHECK_OK(error);
  rocksdb_backup_engine_purge_old_backups(engine, 1, &error);
  CHECK_OK(error);
  const rocksdb_backup_engine_info_t* infos = rocksdb_backup_engine_get_backup_info(engine);
  CHECK(rocksdb_backup_engine_info_count(infos) == 1 && rocksdb_backup_engine_info_backup_id(infos, 0) == 3);
  rocksdb_backup_engine_info_destroy(infos);
  rocksdb_backup_engine_close(engine);
  rocksdb_backup_engine_options_set_destroy_old_data(engine_options, 1);
  engine = rocksdb_backup_engine_open_opts(engine_options, env, &error);
  CHECK_OK(error);
  infos = rocksdb_backup_engine_get_backup_info(engine);
  CHECK(rocksdb_backup_engine_info_count(infos) == 0);
  rocksdb_backup_engine_info_destroy(infos);
  rocksdb_backup_engine_close(engine);
  /* The directory of another program. */
  char *foreign = path_in(arguments[1], "foreign"), *alien = path_in(foreign, "alien");
  CHECK(mkdir(foreign, 0700) == 0);
  fclose(fopen(alien, "w"));
  CHECK(rocksdb_backup_engine_open(options, foreign, &error) == NULL);
  CHECK_ERROR(error, "Invalid argument: ");

  rocksdb_backup_engine_options_destroy(engine_options);
  rocksdb_env_destroy(env);
  char *own = path_in(arguments[1], "own"), *of_own = path_in(arguments[1], "of-own");
  inside(options, own, of_own);
  overtaken(options, arguments[1]);
  free(own);
  free(of_own);
  free(foreign);
  free(alien);
  in_memory();
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  rocksdb_readoptions_destroy(reading);
  free(path);
  free(place);
  free(copy);
  return 0;
}
