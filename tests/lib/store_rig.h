#ifndef FL_LIB_STORE_RIG_H
#define FL_LIB_STORE_RIG_H

/* State folders for tests: creating, damaging and removing them. Every failure ends the test. */

#include <stddef.h>
#include <stdint.h>

#include "libfl/model/layout.h"

#define RIG_PATH_MAX 512
#define RIG_UNITS    3
/* Floats of each unit of rig_layout(); the second has a buffer. */
#define RIG_FC1 8400
#define RIG_FC2 410
#define RIG_FC3 22

/* A fresh folder; the path is the same buffer for the whole test process. */
const char *rig_dir(void);
/* Remove the folder of rig_dir() and its contents. */
void rig_remove(void);
/* "<rig_dir()>/<name>" in a buffer of the caller; returns it. */
const char *rig_path(char *out, const char *name);
/* Three units: fc1 (8400), fc2 (400 and a buffer of 10), fc3 (22). */
struct fl_layout *rig_layout(void);
/* From now on no file may grow past `bytes`: a full disk for this process. 0: no limit. */
void rig_limit_files(uint64_t bytes);
/* When running as root, switch to user nobody, as root may write anywhere. */
void rig_drop_root(void);
void rig_regain_root(void);
/* Run SQL on <dir>/federation.db from outside. */
void rig_sql(const char *sql);
/* PRAGMA integrity_check of <dir>/federation.db is ok. */
void rig_check_db(void);
/* Overwrite `len` bytes of a file at `offset` with 0xA5. */
void rig_damage(const char *path, uint64_t offset, size_t len);
/* Length of a file. */
uint64_t rig_size(const char *path);
void rig_cut(const char *path, uint64_t size);

#endif
