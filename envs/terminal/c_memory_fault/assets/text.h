#ifndef TEXT_H
#define TEXT_H

#include <stddef.h>

/* A string that grows; `bytes` is always terminated. */
struct text {
    char *bytes;
    size_t size, room;
};

void text_init(struct text *t);
void text_add(struct text *t, const char *word);
void text_free(struct text *t);

/* The next line of standard input without its newline, or NULL at the end; the caller frees it. */
char *text_line(void);

/* A copy of a string; the caller frees it. */
char *text_copy(const char *word);

#endif
