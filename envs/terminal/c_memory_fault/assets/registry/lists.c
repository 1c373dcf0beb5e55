#include "store.h"
#include <stdlib.h>
#include <string.h>

void ${tag}_append(struct ${tag}_list *list, const char *word)
{
    struct ${tag} *fresh = malloc(sizeof *fresh);
    fresh->word = text_copy(word);
    fresh->next = NULL;
    if (list->tail)
        list->tail->next = fresh;
    else
        list->head = fresh;
    list->tail = fresh;
}

int ${tag}_remove(struct ${tag}_list *list, const char *word)
{
    struct ${tag} *before = NULL;
    for (struct ${tag} *t = list->head; t; before = t, t = t->next) {
        if (strcmp(t->word, word) != 0)
            continue;
        if (before)
            before->next = t->next;
        else
            list->head = t->next;
        if (list->tail == t)
            list->tail = before;
        free(t->word);
        free(t);
        return 1;
    }
    return 0;
}

void ${tag}_move(struct ${tag}_list *from, struct ${tag}_list *into)
{
    if (!from->head)
        return;
    if (into->tail)
        into->tail->next = from->head;
    else
        into->head = from->head;
    into->tail = from->tail;
    from->head = NULL;
    from->tail = NULL;
}

void ${tag}_clear(struct ${tag}_list *list)
{
    struct ${tag} *t = list->head;
    while (t) {
        struct ${tag} *next = t->next;
        free(t->word);
        free(t);
        t = next;
    }
    list->head = NULL;
    list->tail = NULL;
}
