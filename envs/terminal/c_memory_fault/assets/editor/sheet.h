#ifndef SHEET_H
#define SHEET_H

#include "text.h"
#include <stddef.h>

/* The ${line}s of a text, each a string of its own; positions count from 0. */
struct ${p} {
    char **${line}s;
    size_t count, room;
};

/* What was copied: copies of its own. */
struct ${clip} {
    char **${line}s;
    size_t count;
};

/* The texts that `set` replaced, the latest first. */
struct ${undo} {
    size_t at;
    char *before;
    struct ${undo} *older;
};

void ${p}_init(struct ${p} *s);
void ${p}_free(struct ${p} *s);
void ${p}_insert(struct ${p} *s, size_t at, const char *words);
void ${p}_delete(struct ${p} *s, size_t first, size_t last);
void ${p}_join(struct ${p} *s, size_t at);
void ${p}_split(struct ${p} *s, size_t at, size_t column);
void ${p}_swap(struct ${p} *s, size_t a, size_t b);
void ${p}_trim(struct ${p} *s);
size_t ${p}_widest(const struct ${p} *s);

/* Whether the word is in the ${line}, upper and lower case being the same. */
int ${p}_has(const struct ${p} *s, size_t at, const char *word);

void ${clip}_copy(struct ${clip} *c, const struct ${p} *s, size_t first, size_t last);
void ${clip}_paste(const struct ${clip} *c, struct ${p} *s, size_t at);
void ${clip}_free(struct ${clip} *c);

void ${undo}_set(struct ${undo} **u, struct ${p} *s, size_t at, const char *words);
int ${undo}_back(struct ${undo} **u, struct ${p} *s);

/* What was kept is of no use once ${line}s move. */
void ${undo}_clear(struct ${undo} **u);

#endif
