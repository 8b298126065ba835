#ifndef FL_TLS_AES_H
#define FL_TLS_AES_H

/*
 * Who encrypts with AES-GCM: OpenSSL, or Intel's libipsec-mb where that is installed and the
 * processor has the instructions (VAES on AVX-512) for which it is worth it. OpenSSL 3.0 does not
 * know these.
 */

#include <stddef.h>

#include "libfl/tls/tls.h"

/*
 * The query by which OpenSSL finds what it needs (SSL_CTX_new_ex): it prefers the library, for what
 * that has. NULL: OpenSSL does all. The library is loaded when it is wanted first, once in a
 * process. From any thread.
 */
const char *fl__tls_aes_query(enum fl_tls_aes wanted);
/* As fl_tls_aes_text(). */
const char *fl__tls_aes_text(enum fl_tls_aes wanted, char *out, size_t size);

#endif
