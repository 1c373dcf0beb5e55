#ifndef STORE_H
#define STORE_H

#include "text.h"
#include <stddef.h>

/* One ${tag} of a ${entry}; the list owns its strings. */
struct ${tag} {
    char *word;
    struct ${tag} *next;
};

/* Lists keep the order in which their elements came; `tail` is the last one, NULL in an empty list. */
struct ${tag}_list {
    struct ${tag} *head, *tail;
};

struct ${entry} {
    char *name;
    struct ${tag}_list ${tag}s;
    struct ${entry} *next;
};

/* A hash table with chains; it owns its entries, and `last` is a copy of its own. */
struct ${p} {
    struct ${entry} **buckets;
    size_t num_buckets, count;
    char *last;
};

struct ${p}_stats {
    size_t entries, ${tag}s, longest;
};

void ${tag}_append(struct ${tag}_list *list, const char *word);
int ${tag}_remove(struct ${tag}_list *list, const char *word);
void ${tag}_move(struct ${tag}_list *from, struct ${tag}_list *into);
void ${tag}_clear(struct ${tag}_list *list);

void ${p}_init(struct ${p} *s);
void ${p}_free(struct ${p} *s);
struct ${entry} *${p}_find(const struct ${p} *s, const char *name);
struct ${entry} *${p}_add(struct ${p} *s, const char *name);
int ${p}_drop(struct ${p} *s, const char *name);
void ${p}_rename(struct ${p} *s, struct ${entry} *e, const char *name);
void ${p}_remember(struct ${p} *s, const char *name);
struct ${p}_stats ${p}_measure(const struct ${p} *s);

/* All names in order, NULL after the last; the caller frees the array, not the names. */
const char **${p}_names(const struct ${p} *s);

#endif
