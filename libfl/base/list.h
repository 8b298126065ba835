#ifndef FL_BASE_LIST_H
#define FL_BASE_LIST_H

/*
 * An intrusive doubly linked list. A head and a link are the same struct; all zero is an empty list
 * and an unlinked link. A head in use must not move. Owns nothing; not thread-safe.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fl_list {
    struct fl_list *prev, *next;
};

static inline bool fl_list_is_empty(const struct fl_list *list)
{
    return list->next == NULL || list->next == list;
}

/* Is this link in a list? */
static inline bool fl_list_is_linked(const struct fl_list *link)
{
    return link->next != NULL;
}

/* Before `at`, a link or the head. */
static inline void fl_list_insert(struct fl_list *at, struct fl_list *link)
{
    link->prev = at->prev;
    link->next = at;
    at->prev->next = link;
    at->prev = link;
}

static inline void fl_list_append(struct fl_list *list, struct fl_list *link)
{
    if (list->next == NULL) {
        list->prev = list->next = list;
    }
    fl_list_insert(list, link);
}

static inline void fl_list_prepend(struct fl_list *list, struct fl_list *link)
{
    if (list->next == NULL) {
        list->prev = list->next = list;
    }
    fl_list_insert(list->next, link);
}

/* Does nothing for an unlinked link. */
static inline void fl_list_remove(struct fl_list *link)
{
    if (link->next != NULL) {
        link->prev->next = link->next;
        link->next->prev = link->prev;
        link->prev = link->next = NULL;
    }
}

/* NULL at the end. */
static inline struct fl_list *fl_list_next(const struct fl_list *list, const struct fl_list *link)
{
    return link->next != list ? link->next : NULL;
}

static inline struct fl_list *fl_list_prev(const struct fl_list *list, const struct fl_list *link)
{
    return link->prev != list ? link->prev : NULL;
}

/* The item that contains the link; NULL for NULL. */
static inline void *fl_list_item(struct fl_list *link, size_t offset)
{
    return link != NULL ? (void *)((uint8_t *)link - offset) : NULL;
}

/* The item that `link` is the `member` of. */
#define FL_LIST_ITEM(link, type, member) ((type *)fl_list_item(link, offsetof(type, member)))
/* NULL: there is none. */
#define FL_LIST_FIRST(list, type, member) FL_LIST_ITEM(fl_list_next(list, list), type, member)
#define FL_LIST_LAST(list, type, member)  FL_LIST_ITEM(fl_list_prev(list, list), type, member)
#define FL_LIST_NEXT(list, item, type, member) \
    FL_LIST_ITEM(fl_list_next(list, &(item)->member), type, member)
#define FL_LIST_PREV(list, item, type, member) \
    FL_LIST_ITEM(fl_list_prev(list, &(item)->member), type, member)
/* From the first to the last; the body must not remove `item`. */
#define FL_LIST_FOREACH(item, list, type, member)                    \
    for ((item) = FL_LIST_FIRST(list, type, member); (item) != NULL; \
         (item) = FL_LIST_NEXT(list, item, type, member))
/* The same; `then` holds the next one meanwhile, so that the body may remove `item`. */
#define FL_LIST_FOREACH_SAFE(item, then, list, type, member)                        \
    for ((item) = FL_LIST_FIRST(list, type, member);                                \
         (item) != NULL && ((then) = FL_LIST_NEXT(list, item, type, member), true); \
         (item) = (then))

#endif
