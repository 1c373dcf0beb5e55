#include "sheet.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

void ${p}_init(struct ${p} *s)
{
    s->count = 0;
    s->room = ${room2};
    s->${line}s = malloc(s->room * sizeof *s->${line}s);
}

void ${p}_free(struct ${p} *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->${line}s[i]);
    free(s->${line}s);
}

/* Makes room for one more at a position; takes the string over. */
static void put(struct ${p} *s, size_t at, char *words)
{
    if (s->count == s->room) {
        s->room *= 2;
        s->${line}s = realloc(s->${line}s, s->room * sizeof *s->${line}s);
    }
    memmove(s->${line}s + at + 1, s->${line}s + at, (s->count - at) * sizeof *s->${line}s);
    s->${line}s[at] = words;
    s->count++;
}

void ${p}_insert(struct ${p} *s, size_t at, const char *words)
{
    put(s, at, text_copy(words));
}

void ${p}_delete(struct ${p} *s, size_t first, size_t last)
{
    for (size_t i = first; i <= last; i++)
        free(s->${line}s[i]);
    memmove(s->${line}s + first, s->${line}s + last + 1, (s->count - last - 1) * sizeof *s->${line}s);
    s->count -= last - first + 1;
}

void ${p}_join(struct ${p} *s, size_t at)
{
    const char *second = s->${line}s[at + 1];
    size_t length = strlen(s->${line}s[at]);
    char *joined = realloc(s->${line}s[at], length + strlen(second) + 2);
    joined[length] = ' ';
    strcpy(joined + length + 1, second);
    s->${line}s[at] = joined;
    ${p}_delete(s, at + 1, at + 1);
}

void ${p}_split(struct ${p} *s, size_t at, size_t column)
{
    char *words = s->${line}s[at];
    if (column > strlen(words))
        column = strlen(words);
    char *rest = text_copy(words + column);
    words[column] = '\0';
    put(s, at + 1, rest);
}

void ${p}_swap(struct ${p} *s, size_t a, size_t b)
{
    char *kept = s->${line}s[a];
    s->${line}s[a] = s->${line}s[b];
    s->${line}s[b] = kept;
}

void ${p}_trim(struct ${p} *s)
{
    for (size_t i = 0; i < s->count; i++) {
        char *words = s->${line}s[i];
        size_t length = strlen(words);
        while (length > 0 && words[length - 1] == '.')
            length--;
        words[length] = '\0';
    }
}

size_t ${p}_widest(const struct ${p} *s)
{
    size_t widest = 0;
    for (size_t i = 0; i < s->count; i++)
        if (strlen(s->${line}s[i]) > widest)
            widest = strlen(s->${line}s[i]);
    return widest;
}

static char *lowered(const char *words)
{
    size_t length = strlen(words);
    char *low = malloc(length + 1);
    for (size_t i = 0; i < length; i++)
        low[i] = (char)tolower((unsigned char)words[i]);
    low[length] = '\0';
    return low;
}

int ${p}_has(const struct ${p} *s, size_t at, const char *word)
{
    char *in = lowered(s->${line}s[at]), *wanted = lowered(word);
    int found = strstr(in, wanted) != NULL;
    free(in);
    free(wanted);
    return found;
}
