#ifndef FL_BASE_ERR_H
#define FL_BASE_ERR_H

/*
 * Result codes of the whole project, and their messages.
 *
 * A function that can fail returns FL_OK or a negative code from this table.
 * Codes of libuv, nghttp2, SQLite and errno are translated where they enter
 * and travel no further. Where a person needs details, the last parameter is a
 * `struct fl_err *`, which may be NULL.
 *
 * Threading: no state; a struct fl_err belongs to its caller.
 */

#define FL_PRINTF(fmt_idx, args_idx) __attribute__((format(printf, fmt_idx, args_idx)))
#define FL_MUST_CHECK                __attribute__((warn_unused_result))
#define FL_NORETURN                  __attribute__((noreturn))
#define FL_UNUSED                    __attribute__((unused))

#define FL_ERR_BUF_SIZE 1024

/* clang-format off */
#define FL_ERR_MAP(X)                                               \
    X(FL_ENOMEM,    1,  "out of memory")                            \
    X(FL_EINVAL,    2,  "invalid argument")                         \
    X(FL_EPROTO,    3,  "the peer broke the protocol")              \
    X(FL_EIO,       4,  "input/output error")                       \
    X(FL_ENOENT,    5,  "not found")                                \
    X(FL_EEXIST,    6,  "exists already")                           \
    X(FL_EAGAIN,    7,  "not now, try again")                       \
    X(FL_ELIMIT,    8,  "a limit was exceeded")                     \
    X(FL_ENUMERIC,  9,  "not a finite number")                      \
    X(FL_ESTATE,    10, "not possible in this state")               \
    X(FL_ECANCELED, 11, "cancelled")                                \
    X(FL_ETIMEOUT,  12, "timed out")                                \
    X(FL_EUNAVAIL,  13, "the peer cannot be reached")               \
    X(FL_EREFUSED,  14, "refused")                                  \
    X(FL_ECONF,     15, "bad configuration")                        \
    X(FL_EFORMAT,   16, "bad file format")                          \
    X(FL_ESHAPE,    17, "shapes do not match")                      \
    X(FL_EVERSION,  18, "version not supported")                    \
    X(FL_EPERM,     19, "not permitted")                            \
    X(FL_ECLOSED,   20, "closed")                                   \
    X(FL_EINUSE,    21, "in use")                                   \
    X(FL_ENOSPC,    22, "no space left, or no larger file allowed")  \
    X(FL_EUNIMPL,   23, "not offered by this side")                 \
    X(FL_ERANGE,    24, "out of range")
/* clang-format on */

enum fl_err_code {
    FL_OK = 0,
#define X(name, num, msg) name = -(num),
    FL_ERR_MAP(X)
#undef X
};

struct fl_err {
    int code;                  /* FL_OK when nothing is recorded. */
    char msg[FL_ERR_BUF_SIZE]; /* "outer: inner", for the log. */
};

/* Record `code` and a formatted message in `err` (may be NULL); returns `code`. */
FL_PRINTF(3, 4) int fl_err_set(struct fl_err *err, int code, const char *fmt, ...);

/*
 * Put "context: " in front of the message that `err` holds; when it holds none,
 * the text of `code` follows. Returns `code`.
 */
FL_PRINTF(3, 4) int fl_err_wrap(struct fl_err *err, int code, const char *fmt, ...);

/* The fixed text of a code; never NULL. */
const char *fl_strerror(int code);

/* The message of `err` when it holds one, else the text of `code`; never NULL. */
const char *fl_err_text(const struct fl_err *err, int code);

/* Translate an errno value; unknown ones become FL_EIO. */
int fl_err_from_errno(int errnum);

/*
 * A precondition that the calling code must meet; enabled in release builds too. Never for anything
 * that a peer, a file or an operator can cause.
 */
#define FL_REQUIRE(cond)                                  \
    do {                                                  \
        if (!(cond)) {                                    \
            fl_require_failed(__FILE__, __LINE__, #cond); \
        }                                                 \
    } while (0)

FL_NORETURN void fl_require_failed(const char *file, int line, const char *cond);

#endif
