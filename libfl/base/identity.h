#ifndef FL_BASE_IDENTITY_H
#define FL_BASE_IDENTITY_H

/*
 * The verified identity of the peer of a connection: plain data passed between modules.
 * docs/security.md describes what each identity may do.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fl_identity_kind {
    FL_IDENTITY_NONE,       /* no credentials */
    FL_IDENTITY_LOCAL,      /* a process of this machine, by its socket */
    FL_IDENTITY_CERTIFICATE /* chain, validity and purpose are verified */
};

enum fl_role { FL_ROLE_NONE, FL_ROLE_CLIENT, FL_ROLE_SERVER, FL_ROLE_ADMIN };

/* Longest name of a client, with its NUL. */
#define FL_IDENTITY_NAME_MAX 128
/* RFC 5280 section 4.1.2.2. */
#define FL_SERIAL_MAX 20

/*
 * Most supplementary groups of a process that are read. The kernel sorts them in ascending order,
 * so system groups, below 1000, come before user groups, however many there are.
 */
#define FL_IDENTITY_GROUPS 32

struct fl_identity {
    enum fl_identity_kind kind;
    /* FL_IDENTITY_LOCAL */
    uint32_t uid, gid, pid;
    uint32_t groups[FL_IDENTITY_GROUPS];
    size_t n_groups;
    /* FL_IDENTITY_CERTIFICATE */
    enum fl_role role;
    bool lapsed; /* it had expired when it was verified, but within the grace period */
    char federation[FL_IDENTITY_NAME_MAX]; /* "": from an operator's own PKI, mapped by a rule */
    char name[FL_IDENTITY_NAME_MAX];
    uint8_t serial[FL_SERIAL_MAX]; /* big endian, without leading zeros */
    size_t serial_len;
    uint8_t issuer[32];            /* SHA-256 of the issuer's name; with the serial it is unique */
    uint8_t key[32];               /* SHA-256 of the SubjectPublicKeyInfo */
    int64_t not_before, not_after; /* seconds since 1970, both within */
};

#endif
