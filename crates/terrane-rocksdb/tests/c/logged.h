/* What the tests of options without effect share: the lines of a logger, and what strict mode says. */
#ifndef TERRANE_ROCKSDB_TESTS_LOGGED_H
#define TERRANE_ROCKSDB_TESTS_LOGGED_H

#include "check.h"

#define REFUSED "Not implemented: Not supported in strict mode"

static char lines[1 << 16];

/* A logger's callback. */
static inline void told(void* state, unsigned level, char* line, size_t len) {
  (void)state;
  (void)level;
  CHECK(strlen(lines) + len + 2 < sizeof lines);
  strncat(lines, line, len);
  strcat(lines, "\n");
}

/* How often the lines have this part. */
static inline int times(const char* part) {
  int count = 0;
  for (const char* at = strstr(lines, part); at != NULL; at = strstr(at + 1, part)) count++;
  return count;
}

#endif
