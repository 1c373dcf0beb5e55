#include "text.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_init(struct text *t)
{
    t->size = 0;
    t->room = $room0;
    t->bytes = malloc(t->room);
    t->bytes[0] = '\0';
}

void text_add(struct text *t, const char *word)
{
    size_t length = strlen(word);
    if (t->size + length + 1 > t->room) {
        while (t->size + length + 1 > t->room)
            t->room *= 2;
        t->bytes = realloc(t->bytes, t->room);
    }
    memcpy(t->bytes + t->size, word, length + 1);
    t->size += length;
}

void text_free(struct text *t)
{
    free(t->bytes);
    t->bytes = NULL;
}

char *text_line(void)
{
    size_t size = 0, room = $room1;
    char *line = malloc(room);
    int c;
    while ((c = getchar()) != EOF && c != '\n') {
        if (size + 1 == room) {
            room *= 2;
            line = realloc(line, room);
        }
        line[size++] = (char)c;
    }
    if (c == EOF && size == 0) {
        free(line);
        return NULL;
    }
    line[size] = '\0';
    return line;
}

char *text_copy(const char *word)
{
    size_t length = strlen(word);
    char *copy = malloc(length + 1);
    memcpy(copy, word, length + 1);
    return copy;
}
