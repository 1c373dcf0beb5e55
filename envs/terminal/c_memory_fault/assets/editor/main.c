/* Commands on standard input, one a line; see README.md. */
#include "sheet.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct state {
    struct ${p} s;
    struct ${clip} clip;
    struct ${undo} *undo;
};

/* Reads a number from 1 to `most` and steps behind it and one blank; gives it from 0, or -1 (and says so). */
static long number(const char **at, size_t most)
{
    char *end;
    long found = strtol(*at, &end, 10);
    if (end == *at || found < 1 || (size_t)found > most) {
        printf("range\n");
        return -1;
    }
    *at = *end == ' ' ? end + 1 : end;
    return found - 1;
}

static void range(struct state *e, const char *rest, int copying)
{
    long first = number(&rest, e->s.count), last = first < 0 ? -1 : number(&rest, e->s.count);
    if (last < 0)
        return;
    if (last < first) {
        printf("range\n");
        return;
    }
    if (copying)
        ${clip}_copy(&e->clip, &e->s, (size_t)first, (size_t)last);
    else {
        ${undo}_clear(&e->undo);
        ${p}_delete(&e->s, (size_t)first, (size_t)last);
    }
    printf("ok %zu\n", e->s.count);
}

static void find(const struct state *e, const char *word)
{
    printf("found");
    for (size_t i = 0; i < e->s.count; i++)
        if (${p}_has(&e->s, i, word))
            printf(" %zu", i + 1);
    printf("\n");
}

/* Commands that move ${line}s: what undo kept is dropped. */
static int move(struct state *e, const char *verb, const char *rest)
{
    long at, to;
    if (strcmp(verb, "${insert}") == 0) {
        if ((at = number(&rest, e->s.count + 1)) < 0)
            return 1;
        ${undo}_clear(&e->undo);
        ${p}_insert(&e->s, (size_t)at, rest);
    } else if (strcmp(verb, "${join}") == 0) {
        if ((at = number(&rest, e->s.count ? e->s.count - 1 : 0)) < 0)
            return 1;
        ${undo}_clear(&e->undo);
        ${p}_join(&e->s, (size_t)at);
    } else if (strcmp(verb, "${split}") == 0) {
        if ((at = number(&rest, e->s.count)) < 0 || (to = number(&rest, 1000)) < 0)
            return 1;
        ${undo}_clear(&e->undo);
        ${p}_split(&e->s, (size_t)at, (size_t)to);
    } else if (strcmp(verb, "swap") == 0) {
        if ((at = number(&rest, e->s.count)) < 0 || (to = number(&rest, e->s.count)) < 0)
            return 1;
        ${undo}_clear(&e->undo);
        ${p}_swap(&e->s, (size_t)at, (size_t)to);
    } else if (strcmp(verb, "paste") == 0) {
        if ((at = number(&rest, e->s.count + 1)) < 0)
            return 1;
        ${undo}_clear(&e->undo);
        ${clip}_paste(&e->clip, &e->s, (size_t)at);
    } else
        return 0;
    printf("ok %zu\n", e->s.count);
    return 1;
}

static void obey(struct state *e, const char *verb, const char *rest)
{
    if (move(e, verb, rest))
        return;
    if (strcmp(verb, "${append}") == 0) {
        ${p}_insert(&e->s, e->s.count, rest);
        printf("ok %zu\n", e->s.count);
    } else if (strcmp(verb, "${delete}") == 0)
        range(e, rest, 0);
    else if (strcmp(verb, "copy") == 0)
        range(e, rest, 1);
    else if (strcmp(verb, "set") == 0) {
        long at = number(&rest, e->s.count);
        if (at < 0)
            return;
        ${undo}_set(&e->undo, &e->s, (size_t)at, rest);
        printf("ok %zu\n", e->s.count);
    } else if (strcmp(verb, "undo") == 0)
        printf("%s\n", ${undo}_back(&e->undo, &e->s) ? "undone" : "nothing");
    else if (strcmp(verb, "trim") == 0) {
        ${p}_trim(&e->s);
        printf("ok %zu\n", e->s.count);
    } else if (strcmp(verb, "${find}") == 0)
        find(e, rest);
    else if (strcmp(verb, "widest") == 0)
        printf("widest %zu\n", ${p}_widest(&e->s));
    else if (strcmp(verb, "${print}") == 0)
        for (size_t i = 0; i < e->s.count; i++)
            printf("%zu|%s\n", i + 1, e->s.${line}s[i]);
    else
        printf("what?\n");
}

int main(void)
{
    struct state e = {.undo = NULL};
    ${p}_init(&e.s);
    char *line;
    while ((line = text_line())) {
        char *blank = strchr(line, ' ');
        if (blank)
            *blank = '\0';
        obey(&e, line, blank ? blank + 1 : "");
        free(line);
    }
    ${clip}_free(&e.clip);
    ${undo}_clear(&e.undo);
    ${p}_free(&e.s);
    return 0;
}
