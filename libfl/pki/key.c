/*
 * Loads, generates, compares and saves private keys, and checks the permissions of their files. Any
 * thread. Signs nothing itself (OpenSSL does, for issue.c, request.c and libfl/tls).
 */
#include "libfl/pki/key.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/pki/native.h"
#include "libfl/pki/pki_impl.h"

/* RFC 8446 allows no certificate with less; larger keys cost the verifier of a signature. */
#define FL_RSA_BITS_MIN 2048
#define FL_RSA_BITS_MAX 8192

bool fl__key_kind(const EVP_PKEY *pkey, char *found, size_t size)
{
    char group[64] = "?";

    switch (EVP_PKEY_get_base_id(pkey)) {
    case EVP_PKEY_EC:
        (void)EVP_PKEY_get_group_name(pkey, group, sizeof(group), NULL);
        (void)snprintf(found, size, "EC %s", group);
        return strcmp(group, SN_X9_62_prime256v1) == 0 || strcmp(group, SN_secp384r1) == 0;
    case EVP_PKEY_RSA:
        (void)snprintf(found, size, "RSA of %d bits", EVP_PKEY_get_bits(pkey));
        return EVP_PKEY_get_bits(pkey) >= FL_RSA_BITS_MIN &&
               EVP_PKEY_get_bits(pkey) <= FL_RSA_BITS_MAX;
    case EVP_PKEY_ED25519:
        (void)snprintf(found, size, "Ed25519");
        return true;
    default:
        (void)snprintf(found, size, "%s",
                       EVP_PKEY_get0_type_name(pkey) != NULL ? EVP_PKEY_get0_type_name(pkey) : "?");
        return false;
    }
}

const EVP_MD *fl__key_digest(const EVP_PKEY *pkey)
{
    return EVP_PKEY_get_base_id(pkey) == EVP_PKEY_ED25519 ? NULL : EVP_sha256();
}

int fl__key_wrap(EVP_PKEY *pkey, bool has_private, const char *origin, struct fl_key **ret)
{
    struct fl_key *key = calloc(1, sizeof(*key));
    unsigned char *der = NULL;
    int len = i2d_PUBKEY(pkey, &der);

    if (key == NULL || len <= 0 || (key->origin = fl_str_dup(origin)) == NULL ||
        EVP_Digest(der, (size_t)len, key->hash, NULL, EVP_sha256(), NULL) != 1)
    {
        OPENSSL_free(der);
        if (key != NULL) {
            free(key->origin);
        }
        free(key);
        return fl__openssl_forget(FL_ENOMEM);
    }
    OPENSSL_free(der);
    atomic_init(&key->refs, 1);
    key->pkey = pkey;
    key->has_private = has_private;
    *ret = key;
    return FL_OK;
}

int fl_key_make(struct fl_key **ret)
{
    EVP_PKEY *pkey = EVP_EC_gen("P-256");
    int rv;

    if (pkey == NULL) {
        return fl__openssl_forget(FL_ENOMEM);
    }
    rv = fl__key_wrap(pkey, true, "", ret);
    if (rv != FL_OK) {
        EVP_PKEY_free(pkey);
    }
    return rv;
}

/* Called only when a key is encrypted: records that and supplies no passphrase. */
static int no_passphrase(char *buf, int size, int writing, void *asked)
{
    (void)buf;
    (void)size;
    (void)writing;
    *(bool *)asked = true;
    return -1;
}

static int key_take(EVP_PKEY *pkey, const struct fl_pem_block *block, const char *origin,
                    struct fl_key **ret, struct fl_err *err)
{
    char found[96];

    if (!fl__key_kind(pkey, found, sizeof(found))) {
        return fl_err_set(
            err, FL_EFORMAT,
            "'%s': line %u: unsupported key: %s; supported are EC P-256, EC P-384, RSA of %d to %d "
            "bits and Ed25519; create one with `openssl genpkey -algorithm EC -pkeyopt "
            "ec_paramgen_curve:P-256` and a certificate for it",
            origin, block->line, found, FL_RSA_BITS_MIN, FL_RSA_BITS_MAX);
    }
    return fl__key_wrap(pkey, true, origin, ret);
}

int fl_key_parse(const void *pem, size_t len, const char *origin, struct fl_key **ret,
                 struct fl_err *err)
{
    struct fl_pem scan = {.text = pem, .len = len};
    struct fl_pem_block block;
    bool certificate = false;
    int rv;

    while ((rv = fl__pem_next(&scan, origin, &block, err)) == FL_OK) {
        if (fl_str_ends_with(block.label, "PRIVATE KEY")) {
            BIO *bio = BIO_new_mem_buf(block.text, (int)block.len);
            bool asked = false;
            EVP_PKEY *pkey;

            if (bio == NULL) {
                return FL_ENOMEM;
            }
            pkey = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, &asked);
            BIO_free(bio);
            if (pkey == NULL && asked) {
                rv = fl_err_set(
                    err, FL_EFORMAT,
                    "'%s': line %u: the key is encrypted with a passphrase, which a service cannot "
                    "enter; write it without one by `openssl pkey -in %s -out NEW`",
                    origin, block.line, origin);
            } else if (pkey == NULL) {
                rv = fl_err_set(err, FL_EFORMAT,
                                "'%s': line %u: the block '%s' contains no readable key: the file "
                                "is damaged; check it with `openssl pkey -in %s -noout -check`",
                                origin, block.line, block.label, origin);
            } else {
                rv = key_take(pkey, &block, origin, ret, err);
                if (rv != FL_OK) {
                    EVP_PKEY_free(pkey);
                }
            }
            return fl__openssl_verdict(rv, err);
        }
        certificate = certificate || strcmp(block.label, "CERTIFICATE") == 0;
    }
    if (rv != FL_ENOENT) {
        return rv;
    }
    return fl_err_set(err, FL_EFORMAT,
                      certificate ? "'%s' contains certificates and no private key; check whether "
                                    "the files of certificate and key are swapped"
                                  : "'%s' contains no private key, a PEM file with '-----BEGIN "
                                    "PRIVATE KEY-----' was expected",
                      origin);
}

/* The rule of key.h; PostgreSQL has the same for its key. */
static int check_mode(const struct stat *st, const char *path, struct fl_err *err)
{
    unsigned mode = st->st_mode & 07777;

    if (!S_ISREG(st->st_mode)) {
        return fl_err_set(err, FL_EPERM,
                          "'%s' is not a file; the file of a private key was expected", path);
    }
    if (st->st_uid == geteuid()) {
        if ((mode & (S_IRWXG | S_IRWXO)) != 0) {
            return fl_err_set(err, FL_EPERM,
                              "'%s' has mode %04o: other users can read this private key, or "
                              "change it; 0600 was expected: `chmod 0600 %s`, and if other users "
                              "were on this machine, make a new key",
                              path, mode, path);
        }
        return FL_OK;
    }
    if (st->st_uid != 0 && geteuid() == 0) {
        return fl_err_set(err, FL_EPERM,
                          "'%s' belongs to user %u, this program runs as root; run it as the user "
                          "that owns the key",
                          path, (unsigned)st->st_uid);
    }
    if (st->st_uid != 0) {
        return fl_err_set(
            err, FL_EPERM,
            "'%s' belongs to user %u, this program runs as %u: a private key belongs to "
            "the user of its program or to root: `chown %u %s`",
            path, (unsigned)st->st_uid, (unsigned)geteuid(), (unsigned)geteuid(), path);
    }
    if ((mode & (S_IWGRP | S_IXGRP | S_IRWXO)) != 0) {
        return fl_err_set(
            err, FL_EPERM,
            "'%s' belongs to root and has mode %04o: other users can read this private key, or its "
            "group change it; at most 0640 was expected: `chmod 0640 %s`",
            path, mode, path);
    }
    return FL_OK;
}

static int read_key(int fd, const char *path, char *text, size_t size, size_t *ret_len,
                    struct fl_err *err)
{
    struct stat st;
    size_t len = 0;
    int rv;

    *ret_len = 0;
    if (fstat(fd, &st) != 0) {
        return fl_err_set(err, fl_err_from_errno(errno), "cannot examine '%s': %s", path,
                          strerror(errno));
    }
    rv = check_mode(&st, path, err);
    if (rv != FL_OK) {
        return rv;
    }
    while (len < size) {
        ssize_t n = read(fd, text + len, size - len);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return fl_err_set(err, fl_err_from_errno(errno), "cannot read '%s': %s", path,
                              strerror(errno));
        }
        if (n == 0) {
            *ret_len = len;
            return FL_OK;
        }
        len += (size_t)n;
    }
    return fl_err_set(err, FL_ELIMIT, "'%s' is longer than %d bytes: not the file of a private key",
                      path, FL_KEY_FILE_MAX);
}

int fl_key_load(const char *path, struct fl_key **ret, struct fl_err *err)
{
    char text[FL_KEY_FILE_MAX + 1];
    /* Not blocking, because the path may be a pipe. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t len = 0;
    int rv;

    if (fd < 0) {
        int cause = errno;
        struct stat st;

        if (cause == EACCES && stat(path, &st) == 0) {
            return fl_err_set(
                err, FL_EPERM,
                "cannot open the private key '%s': permission denied: it belongs to user "
                "%u with mode %04o, this program runs as user %u: `chown %u %s`",
                path, (unsigned)st.st_uid, (unsigned)st.st_mode & 07777, (unsigned)geteuid(),
                (unsigned)geteuid(), path);
        }
        return fl_err_set(err, fl_err_from_errno(cause), "cannot open the private key '%s': %s",
                          path, strerror(cause));
    }
    rv = read_key(fd, path, text, sizeof(text), &len, err);
    (void)close(fd);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_key_parse(text, len, path, ret, err);
done:
    OPENSSL_cleanse(text, sizeof(text));
    return rv;
}

static int write_key(const char *tmp, const char *text, size_t len, bool sync, struct fl_err *err)
{
    int fd;
    int rv;

    /* Left by a crash; a file with another mode must not be reused. */
    (void)unlink(tmp);
    fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return fl_err_set(err, fl_err_from_errno(errno), "cannot create '%s': %s", tmp,
                          strerror(errno));
    }
    rv = fl_fs_pwrite(fd, text, len, 0);
    if (rv != FL_OK) {
        goto fail;
    }
    if (sync && fsync(fd) != 0) {
        rv = fl_err_from_errno(errno);
        goto fail;
    }
    if (close(fd) == 0) {
        return FL_OK;
    }
    fd = -1;
    rv = fl_err_from_errno(errno);
fail:
    if (fd >= 0) {
        (void)close(fd);
    }
    (void)unlink(tmp);
    return fl_err_set(err, rv, "cannot write '%s': %s", tmp, fl_strerror(rv));
}

int fl_key_save(const struct fl_key *key, const char *path, bool sync, struct fl_err *err)
{
    char tmp[4096];
    BIO *bio;
    char *text;
    long len;
    int rv;

    FL_REQUIRE(key->has_private);
    if (snprintf(tmp, sizeof(tmp), "%s.tmp", path) >= (int)sizeof(tmp)) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", path);
    }
    bio = BIO_new(BIO_s_mem()); /* wiped when it is freed */
    if (bio == NULL || PEM_write_bio_PrivateKey(bio, key->pkey, NULL, NULL, 0, NULL, NULL) != 1) {
        BIO_free(bio);
        return fl__openssl_forget(
            fl_err_set(err, FL_ENOMEM, "cannot write '%s': out of memory", path));
    }
    len = BIO_get_mem_data(bio, &text);
    rv = write_key(tmp, text, (size_t)len, sync, err);
    BIO_free(bio);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_fs_publish(tmp, path, sync, err);
    if (rv != FL_OK) {
        (void)unlink(tmp);
    }
    return rv;
}

void fl_key_hash(const struct fl_key *key, uint8_t out[FL_KEY_HASH])
{
    (void)memcpy(out, key->hash, FL_KEY_HASH);
}

bool fl_key_is_private(const struct fl_key *key)
{
    return key->has_private;
}

const char *fl_key_origin(const struct fl_key *key)
{
    return key->origin;
}

struct evp_pkey_st *fl_key_native(const struct fl_key *key)
{
    return key->pkey;
}

struct fl_key *fl_key_ref(struct fl_key *key)
{
    (void)atomic_fetch_add_explicit(&key->refs, 1, memory_order_relaxed);
    return key;
}

void fl_key_unref(struct fl_key *key)
{
    if (key == NULL || atomic_fetch_sub_explicit(&key->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    EVP_PKEY_free(key->pkey);
    free(key->origin);
    free(key);
}
