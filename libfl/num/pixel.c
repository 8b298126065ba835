#include "libfl/num/pixel_kern.h"

void fl__pixel_bias_sums(const struct fl__pixel_kern *kern, float *db,
                         const struct fl__pixel_map *map, size_t batch)
{
    const struct fl__pixel_runs runs = fl__pixel_runs(batch, map->pixels, map->c, map->lddy,
                                                      map->y != NULL ? map->ldy : map->lddy);
    size_t c0, i, j;

    for (c0 = 0; c0 < map->c; c0 += FL__PIXEL_CHUNK) {
        size_t n = map->c - c0 < FL__PIXEL_CHUNK ? map->c - c0 : FL__PIXEL_CHUNK;
        double total[FL__PIXEL_CHUNK] = {0};

        for (i = 0; i < runs.n; i++) {
            float *dy = map->dy + i * map->lddy + c0;

            if (map->y != NULL) {
                kern->mask_sums(total, dy, map->y + i * map->ldy + c0, runs.ld, runs.rows, n);
            } else {
                kern->sums(total, dy, runs.ld, runs.rows, n);
            }
        }
        for (j = 0; j < n; j++) {
            db[c0 + j] = (float)total[j];
        }
    }
}
