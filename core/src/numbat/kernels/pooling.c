/* Pools of float32 over channels-last arrays, and sums over chosen places of an axis.
 *
 * Windows are told by the places of their cells along each axis, -1 for a cell outside the input.
 * References: kernels/pooling.py and kernels/resampling.py.
 */
#include <stdint.h>
#include <string.h>

#define BLOCK 32 /* channels whose greatest values are kept at a time */

/* The greatest value of each window, and its place in the flattened space of one channel.
 *
 * x: [batch][in0][in1][in2][channels]; at0..at2: [out][cells] of each axis; best, index: [batch][out0][out1]
 * [out2][channels]; index may be NULL. shape: in0 in1 in2, out0 out1 out2, cells0 cells1 cells2, channels.
 * For the windows' rows [begin, end) of batch x out0 x out1. */
void nb_max_pool(const float *x, float *best, int32_t *index, const int64_t *at0, const int64_t *at1,
                 const int64_t *at2, const int64_t *shape, int64_t begin, int64_t end) {
    const int64_t *in = shape, *out = shape + 3, *cells = shape + 6;
    int64_t channels = shape[9], space = in[0] * in[1] * in[2];
    for (int64_t row = begin; row < end; row++) {
        int64_t n = row / (out[0] * out[1]), o0 = row / out[1] % out[0], o1 = row % out[1];
        const float *whole = x + n * space * channels;
        for (int64_t o2 = 0; o2 < out[2]; o2++) {
            int64_t to = (row * out[2] + o2) * channels;
            for (int64_t c = 0; c < channels; c += BLOCK) {
                int64_t width = channels - c < BLOCK ? channels - c : BLOCK;
                float most[BLOCK];
                int32_t place[BLOCK];
                int first = 1;
                for (int64_t k0 = 0; k0 < cells[0]; k0++) {
                    int64_t i0 = at0[o0 * cells[0] + k0];
                    if (i0 < 0) continue;
                    for (int64_t k1 = 0; k1 < cells[1]; k1++) {
                        int64_t i1 = at1[o1 * cells[1] + k1];
                        if (i1 < 0) continue;
                        for (int64_t k2 = 0; k2 < cells[2]; k2++) {
                            int64_t i2 = at2[o2 * cells[2] + k2];
                            if (i2 < 0) continue;
                            int64_t flat = (i0 * in[1] + i1) * in[2] + i2;
                            const float *from = whole + flat * channels + c;
                            if (first) {
                                memcpy(most, from, (size_t)width * sizeof(float));
                                for (int64_t k = 0; k < width; k++) place[k] = (int32_t)flat;
                                first = 0;
                            } else if (width == BLOCK) {
                                for (int k = 0; k < BLOCK; k++) {
                                    /* Greater, or NaN. */
                                    int taken = !(from[k] <= most[k]) & !((most[k] != most[k]) & (from[k] == from[k]));
                                    most[k] = taken ? from[k] : most[k];
                                    place[k] = taken ? (int32_t)flat : place[k];
                                }
                            } else {
                                for (int64_t k = 0; k < width; k++) {
                                    int taken = !(from[k] <= most[k]) & !((most[k] != most[k]) & (from[k] == from[k]));
                                    most[k] = taken ? from[k] : most[k];
                                    place[k] = taken ? (int32_t)flat : place[k];
                                }
                            }
                        }
                    }
                }
                if (first) { /* No cell of the window lies inside. */
                    for (int64_t k = 0; k < width; k++) { most[k] = -__builtin_inff(); place[k] = -1; }
                }
                memcpy(best + to + c, most, (size_t)width * sizeof(float));
                if (index) memcpy(index + to + c, place, (size_t)width * sizeof(int32_t));
            }
        }
    }
}

/* Adds each value of grad [batch][out][channels] at its place of into [batch][space][channels], which is
 * set to zero first; for the units [begin, end) of batch x blocks of BLOCK channels. */
void nb_max_pool_back(const float *grad, const int32_t *index, float *into, int64_t out, int64_t space,
                      int64_t channels, int64_t begin, int64_t end) {
    int64_t blocks = (channels + BLOCK - 1) / BLOCK;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t n = unit / blocks, c = unit % blocks * BLOCK;
        int64_t width = channels - c < BLOCK ? channels - c : BLOCK;
        float *to = into + n * space * channels + c;
        for (int64_t i = 0; i < space; i++) memset(to + i * channels, 0, (size_t)width * sizeof(float));
        for (int64_t o = 0; o < out; o++) {
            const float *given = grad + (n * out + o) * channels + c;
            const int32_t *place = index + (n * out + o) * channels + c;
            for (int64_t k = 0; k < width; k++)
                if (place[k] >= 0) to[(int64_t)place[k] * channels + k] += given[k];
        }
    }
}

/* out [outer][rows][inner] = for each row the sum of weight times x [outer][extent][inner] at the row's
 * places: entries starts[row] to starts[row + 1] of places and weights (NULL: all 1). For the rows
 * [begin, end) of outer x rows. */
void nb_resample(const float *x, float *out, const int64_t *starts, const int64_t *places, const float *weights,
                 int64_t rows, int64_t extent, int64_t inner, int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t row = unit % rows, entry = starts[row], last = starts[row + 1];
        const float *from = x + unit / rows * extent * inner;
        float *to = out + unit * inner;
        if (entry == last) {
            memset(to, 0, (size_t)inner * sizeof(float));
            continue;
        }
        /* The first entry sets, so that a single one copies bit for bit. */
        const float *first = from + places[entry] * inner;
        if (!weights) {
            memcpy(to, first, (size_t)inner * sizeof(float));
            for (entry++; entry < last; entry++) {
                const float *next = from + places[entry] * inner;
                for (int64_t k = 0; k < inner; k++) to[k] += next[k];
            }
            continue;
        }
        float weight = weights[entry];
        for (int64_t k = 0; k < inner; k++) to[k] = first[k] * weight;
        for (entry++; entry < last; entry++) {
            const float *next = from + places[entry] * inner;
            weight = weights[entry];
            for (int64_t k = 0; k < inner; k++) to[k] += next[k] * weight;
        }
    }
}
