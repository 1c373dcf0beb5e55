#include "sheet.h"
#include <stdlib.h>
#include <string.h>

void ${clip}_free(struct ${clip} *c)
{
    for (size_t i = 0; i < c->count; i++)
        free(c->${line}s[i]);
    free(c->${line}s);
    c->${line}s = NULL;
    c->count = 0;
}

void ${clip}_copy(struct ${clip} *c, const struct ${p} *s, size_t first, size_t last)
{
    ${clip}_free(c);
    c->count = last - first + 1;
    c->${line}s = malloc(c->count * sizeof *c->${line}s);
    for (size_t i = 0; i < c->count; i++)
        c->${line}s[i] = text_copy(s->${line}s[first + i]);
}

void ${clip}_paste(const struct ${clip} *c, struct ${p} *s, size_t at)
{
    for (size_t i = 0; i < c->count; i++)
        ${p}_insert(s, at + i, c->${line}s[i]);
}

void ${undo}_set(struct ${undo} **u, struct ${p} *s, size_t at, const char *words)
{
    struct ${undo} *step = malloc(sizeof *step);
    step->at = at;
    step->before = s->${line}s[at];
    step->older = *u;
    *u = step;
    s->${line}s[at] = text_copy(words);
}

int ${undo}_back(struct ${undo} **u, struct ${p} *s)
{
    struct ${undo} *step = *u;
    if (!step)
        return 0;
    free(s->${line}s[step->at]);
    s->${line}s[step->at] = step->before;
    *u = step->older;
    free(step);
    return 1;
}

void ${undo}_clear(struct ${undo} **u)
{
    while (*u) {
        struct ${undo} *step = *u;
        *u = step->older;
        free(step->before);
        free(step);
    }
}
