/* What the tests of options without effect share: the lines of a logger, and what strict mode says. */
#ifndef TERRANE_ROCKSDB_TESTS_LOGGED_H
#define TERRANE_ROCKSDB_TESTS_LOGGED_H

#include <pthread.h>

#include "check.h"

#define REFUSED "Not implemented: Not supported in strict mode"

static char lines[1 << 16];
/* The program's own thread logs options while that of the listeners logs column families and jobs. */
static pthread_mutex_t of_lines = PTHREAD_MUTEX_INITIALIZER;

/* A logger's callback. */
static inline void told(void* state, unsigned level, char* line, size_t len) {
  (void)state;
  (void)level;
  CHECK(pthread_mutex_lock(&of_lines) == 0);
  CHECK(strlen(lines) + len + 2 < sizeof lines);
  strncat(lines, line, len);
  strcat(lines, "\n");
  CHECK(pthread_mutex_unlock(&of_lines) == 0);
}

/* How often the lines have this part. */
static inline int times(const char* part) {
  int count = 0;
  CHECK(pthread_mutex_lock(&of_lines) == 0);
  for (const char* at = strstr(lines, part); at != NULL; at = strstr(at + 1, part)) count++;
  CHECK(pthread_mutex_unlock(&of_lines) == 0);
  return count;
}

/* There are no lines yet. */
static inline void forget_lines(void) {
  CHECK(pthread_mutex_lock(&of_lines) == 0);
  lines[0] = 0;
  CHECK(pthread_mutex_unlock(&of_lines) == 0);
}

#endif
