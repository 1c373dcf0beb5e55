/* Commands on standard input, one a line; see README.md. */
#include "store.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 4 };

/* Cuts the line at its blanks; words beyond MOST_WORDS are left out. */
static int cut(char *line, char **words)
{
    int count = 0;
    char *at = line;
    while (count < MOST_WORDS) {
        at += strspn(at, " ");
        if (!*at)
            break;
        words[count++] = at;
        at += strcspn(at, " ");
        if (*at)
            *at++ = '\0';
    }
    return count;
}

static void show(struct ${p} *s, const char *name)
{
    struct ${entry} *e = ${p}_find(s, name);
    if (!e) {
        printf("no %s\n", name);
        return;
    }
    struct text t;
    text_init(&t);
    text_add(&t, e->name);
    text_add(&t, ":");
    for (const struct ${tag} *one = e->${tag}s.head; one; one = one->next) {
        text_add(&t, " ");
        text_add(&t, one->word);
    }
    puts(t.bytes);
    text_free(&t);
    ${p}_remember(s, name);
}

static void list(const struct ${p} *s)
{
    const char **names = ${p}_names(s);
    printf("names:");
    for (const char **name = names; *name; name++)
        printf(" %s", *name);
    printf("\n");
    free(names);
}

static void rename_one(struct ${p} *s, const char *old, const char *name)
{
    struct ${entry} *e = ${p}_find(s, old);
    if (!e)
        printf("no %s\n", old);
    else if (${p}_find(s, name))
        printf("exists %s\n", name);
    else {
        ${p}_rename(s, e, name);
        printf("renamed %s\n", name);
    }
}

static void merge(struct ${p} *s, const char *from, const char *into)
{
    struct ${entry} *a = ${p}_find(s, from), *b = ${p}_find(s, into);
    if (!a || !b)
        printf("no %s\n", a ? into : from);
    else if (a == b)
        printf("same %s\n", into);
    else {
        ${tag}_move(&a->${tag}s, &b->${tag}s);
        ${p}_drop(s, from);
        printf("merged %s\n", into);
    }
}

static void obey(struct ${p} *s, int count, char **words)
{
    struct ${entry} *e = count >= 2 ? ${p}_find(s, words[1]) : NULL;
    if (count == 2 && strcmp(words[0], "${add}") == 0) {
        if (!e)
            ${p}_add(s, words[1]);
        printf("%s %s\n", e ? "exists" : "added", words[1]);
    } else if (count == 2 && strcmp(words[0], "${drop}") == 0)
        printf("%s %s\n", ${p}_drop(s, words[1]) ? "dropped" : "no", words[1]);
    else if (count == 2 && strcmp(words[0], "${show}") == 0)
        show(s, words[1]);
    else if (count == 3 && strcmp(words[0], "${rename}") == 0)
        rename_one(s, words[1], words[2]);
    else if (count == 3 && strcmp(words[0], "${merge}") == 0)
        merge(s, words[1], words[2]);
    else if (count == 3 && strcmp(words[0], "${tag}") == 0) {
        if (e)
            ${tag}_append(&e->${tag}s, words[2]);
        printf("%s %s\n", e ? "ok" : "no", words[1]);
    } else if (count == 3 && strcmp(words[0], "un${tag}") == 0)
        printf("%s %s\n", e && ${tag}_remove(&e->${tag}s, words[2]) ? "ok" : "none", words[2]);
    else if (count == 1 && strcmp(words[0], "${list}") == 0)
        list(s);
    else if (count == 1 && strcmp(words[0], "last") == 0)
        printf("last %s\n", s->last ? s->last : "-");
    else if (count == 1 && strcmp(words[0], "stats") == 0) {
        struct ${p}_stats found = ${p}_measure(s);
        printf("stats %zu %zu %zu\n", found.entries, found.${tag}s, found.longest);
    } else
        printf("what?\n");
}

int main(void)
{
    struct ${p} s;
    ${p}_init(&s);
    char *line;
    while ((line = text_line())) {
        char *words[MOST_WORDS];
        int count = cut(line, words);
        if (count > 0)
            obey(&s, count, words);
        free(line);
    }
    ${p}_free(&s);
    return 0;
}
