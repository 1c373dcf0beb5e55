#include "store.h"
#include <stdlib.h>
#include <string.h>

static size_t place(const char *name, size_t num_buckets)
{
    unsigned hash = ${seed}u;
    for (; *name; name++)
        hash = hash * ${factor}u + (unsigned char)*name;
    return hash % num_buckets;
}

void ${p}_init(struct ${p} *s)
{
    s->num_buckets = ${buckets};
    s->count = 0;
    s->buckets = calloc(s->num_buckets, sizeof *s->buckets);
    s->last = NULL;
}

static void discard(struct ${entry} *e)
{
    ${tag}_clear(&e->${tag}s);
    free(e->name);
    free(e);
}

void ${p}_free(struct ${p} *s)
{
    for (size_t b = 0; b < s->num_buckets; b++) {
        struct ${entry} *e = s->buckets[b];
        while (e) {
            struct ${entry} *next = e->next;
            discard(e);
            e = next;
        }
    }
    free(s->buckets);
    free(s->last);
}

struct ${entry} *${p}_find(const struct ${p} *s, const char *name)
{
    struct ${entry} *e = s->buckets[place(name, s->num_buckets)];
    while (e && strcmp(e->name, name) != 0)
        e = e->next;
    return e;
}

static void link_in(struct ${p} *s, struct ${entry} *e)
{
    struct ${entry} **bucket = &s->buckets[place(e->name, s->num_buckets)];
    e->next = *bucket;
    *bucket = e;
}

static void unlink_from(struct ${p} *s, struct ${entry} *e)
{
    struct ${entry} **link = &s->buckets[place(e->name, s->num_buckets)];
    while (*link != e)
        link = &(*link)->next;
    *link = e->next;
}

static void grow(struct ${p} *s)
{
    struct ${entry} **old = s->buckets;
    size_t num_old = s->num_buckets;
    s->num_buckets *= 2;
    s->buckets = calloc(s->num_buckets, sizeof *s->buckets);
    for (size_t b = 0; b < num_old; b++) {
        struct ${entry} *e = old[b];
        while (e) {
            struct ${entry} *next = e->next;
            link_in(s, e);
            e = next;
        }
    }
    free(old);
}

struct ${entry} *${p}_add(struct ${p} *s, const char *name)
{
    if (s->count >= 2 * s->num_buckets)
        grow(s);
    struct ${entry} *e = malloc(sizeof *e);
    e->name = text_copy(name);
    e->${tag}s.head = NULL;
    e->${tag}s.tail = NULL;
    link_in(s, e);
    s->count++;
    return e;
}

int ${p}_drop(struct ${p} *s, const char *name)
{
    struct ${entry} *e = ${p}_find(s, name);
    if (!e)
        return 0;
    unlink_from(s, e);
    discard(e);
    s->count--;
    return 1;
}

void ${p}_rename(struct ${p} *s, struct ${entry} *e, const char *name)
{
    unlink_from(s, e);
    free(e->name);
    e->name = text_copy(name);
    link_in(s, e);
}

void ${p}_remember(struct ${p} *s, const char *name)
{
    char *copy = text_copy(name);
    free(s->last);
    s->last = copy;
}

struct ${p}_stats ${p}_measure(const struct ${p} *s)
{
    struct ${p}_stats found = {0, 0, 0};
    for (size_t b = 0; b < s->num_buckets; b++)
        for (const struct ${entry} *e = s->buckets[b]; e; e = e->next) {
            size_t length = strlen(e->name);
            found.entries++;
            if (length > found.longest)
                found.longest = length;
            for (const struct ${tag} *t = e->${tag}s.head; t; t = t->next)
                found.${tag}s++;
        }
    return found;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **${p}_names(const struct ${p} *s)
{
    const char **names = malloc((s->count + 1) * sizeof *names);
    size_t at = 0;
    for (size_t b = 0; b < s->num_buckets; b++)
        for (const struct ${entry} *e = s->buckets[b]; e; e = e->next)
            names[at++] = e->name;
    qsort(names, at, sizeof *names, compare);
    names[at] = NULL;
    return names;
}
