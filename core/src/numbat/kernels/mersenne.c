/* The Mersenne Twister (MT19937) and the distributions that PyTorch's CPU generator makes of it.
 *
 * A stream is sequential, so these work over `count` numbers from a state that the caller holds: 624
 * words and the index of the next one (624 when they are used up). Each answers the new index. The
 * numpy reference beside each is the method of the same meaning in random/streams.py.
 * Source: Matsumoto and Nishimura 1998 (mt19937ar.c); PyTorch, ATen/core/DistributionsHelper.h,
 * ATen/native/cpu/DistributionTemplates.h and avx_mathfun.h (after Cephes).
 */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define WORDS 624
#define MIDDLE 397
#define CHUNK 1024

static uint32_t mixed(uint32_t high, uint32_t low) {
    uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);
    return (y >> 1) ^ ((0u - (low & 1u)) & 0x9908b0dfu);
}

static void twist(uint32_t *s) {
    int i = 0;
    for (; i < WORDS - MIDDLE; i++) s[i] = s[i + MIDDLE] ^ mixed(s[i], s[i + 1]);
    for (; i < WORDS - 1; i++) s[i] = s[i + MIDDLE - WORDS] ^ mixed(s[i], s[i + 1]);
    s[WORDS - 1] = s[MIDDLE - 1] ^ mixed(s[WORDS - 1], s[0]);
}

int64_t nb_mersenne_words(uint32_t *state, int64_t next, uint32_t *out, int64_t count) {
    while (count > 0) {
        if (next == WORDS) { twist(state); next = 0; }
        int64_t many = WORDS - next < count ? WORDS - next : count;
        for (int64_t i = 0; i < many; i++) {
            uint32_t y = state[next + i];
            y ^= y >> 11;
            y ^= (y << 7) & 0x9d2c5680u;
            y ^= (y << 15) & 0xefc60000u;
            out[i] = y ^ (y >> 18);
        }
        next += many; out += many; count -= many;
    }
    return next;
}

/* 53 bits of two words, the first of them the higher: a double in [0, 1). */
static double real53(uint32_t high, uint32_t low) {
    uint64_t bits = (((uint64_t)high << 32) | low) & (((uint64_t)1 << 53) - 1);
    return (double)(int64_t)bits * 0x1p-53;
}

/* Uniform numbers from low to high; what rounds up to high becomes low. */
int64_t nb_mersenne_uniform_f32(uint32_t *state, int64_t next, float *out, int64_t count, double low, double high) {
    uint32_t words[CHUNK];
    float first = (float)low, bound = (float)high;
    double span = bound - first, start = first;
    for (int64_t begin = 0; begin < count; begin += CHUNK) {
        int64_t many = count - begin < CHUNK ? count - begin : CHUNK;
        next = nb_mersenne_words(state, next, words, many);
        /* 24 bits times a float's span is exact in a double, so that only the last step rounds. */
        for (int64_t i = 0; i < many; i++) {
            float x = (float)((double)(int32_t)(words[i] & 0xffffffu) * 0x1p-24 * span + start);
            out[begin + i] = x == bound ? first : x;
        }
    }
    return next;
}

int64_t nb_mersenne_uniform_f64(uint32_t *state, int64_t next, double *out, int64_t count, double low, double high) {
    uint32_t words[CHUNK];
    double span = high - low;
    for (int64_t begin = 0; begin < count; begin += CHUNK / 2) {
        int64_t many = count - begin < CHUNK / 2 ? count - begin : CHUNK / 2;
        next = nb_mersenne_words(state, next, words, 2 * many);
        for (int64_t i = 0; i < many; i++) {
            double x = fma(real53(words[2 * i], words[2 * i + 1]), span, low);
            out[begin + i] = x == high ? low : x;
        }
    }
    return next;
}

/* True with probability p. */
int64_t nb_mersenne_bernoulli(uint32_t *state, int64_t next, uint8_t *out, int64_t count, double p) {
    uint32_t words[CHUNK];
    for (int64_t begin = 0; begin < count; begin += CHUNK / 2) {
        int64_t many = count - begin < CHUNK / 2 ? count - begin : CHUNK / 2;
        next = nb_mersenne_words(state, next, words, 2 * many);
        for (int64_t i = 0; i < many; i++) out[begin + i] = real53(words[2 * i], words[2 * i + 1]) < p;
    }
    return next;
}

/* `value` with probability p, else 0: the factors of a dropout. */
int64_t nb_mersenne_factors_f32(uint32_t *state, int64_t next, float *out, int64_t count, double p, double value) {
    uint32_t words[CHUNK];
    float kept = (float)value;
    for (int64_t begin = 0; begin < count; begin += CHUNK / 2) {
        int64_t many = count - begin < CHUNK / 2 ? count - begin : CHUNK / 2;
        next = nb_mersenne_words(state, next, words, 2 * many);
        for (int64_t i = 0; i < many; i++)
            out[begin + i] = real53(words[2 * i], words[2 * i + 1]) < p ? kept : 0.0f;
    }
    return next;
}

static float float_of(uint32_t bits) { float x; memcpy(&x, &bits, 4); return x; }
static uint32_t bits_of(float x) { uint32_t bits; memcpy(&bits, &x, 4); return bits; }
#define FMA __builtin_fmaf

/* Cephes' logarithm of a normal positive float, each multiply-add rounded once where PyTorch's build does. */
static inline float logarithm(float x) {
    static const float p[] = {
        -1.1514610310E-1f, 1.1676998740E-1f, -1.2420140846E-1f, 1.4249322787E-1f, -1.6668057665E-1f,
        2.0000714765E-1f, -2.4999993993E-1f, 3.3333331174E-1f};
    uint32_t bits = bits_of(x);
    float e = (float)((int32_t)(bits >> 23) - 127) + 1.0f;
    x = float_of((bits & 0x007fffffu) | 0x3f000000u);
    int small = x < 0.707106781186547524f;
    float twice = small ? x : 0.0f;
    x = (x - 1.0f) + twice;
    e -= small ? 1.0f : 0.0f;
    float z = x * x, y = 7.0376836292E-2f;
    for (int k = 0; k < 8; k++) y = FMA(y, x, p[k]);
    y = y * x;
    y = FMA(y, z, e * -2.12194440e-4f);
    y = FMA(-z, 0.5f, y);
    x = x + y;
    return FMA(e, 0.693359375f, x);
}

/* Cephes' sine and cosine of a float in [0, 2 pi]. */
static inline void sine_cosine(float x, float *sine, float *cosine) {
    int32_t octant = ((int32_t)(x * 1.27323954473516f) + 1) & ~1;
    float y = (float)octant;
    uint32_t turn_sine = (uint32_t)(octant & 4) << 29, turn_cosine = (uint32_t)(~(octant - 2) & 4) << 29;
    int straight = (octant & 2) == 0;
    x = FMA(y, -0.78515625f, x);
    x = FMA(y, -2.4187564849853515625e-4f, x);
    x = FMA(y, -3.77489497744594108e-8f, x);
    float z = x * x;
    float c = FMA(2.443315711809948E-005f, z, -1.388731625493765E-003f);
    c = FMA(c, z, 4.166664568298827E-002f);
    c = c * z;
    c = FMA(c, z, -(z * 0.5f)) + 1.0f;
    float s = FMA(-1.9515295891E-4f, z, 8.3321608736E-3f);
    s = FMA(s, z, -1.6666654611E-1f);
    s = s * z;
    s = FMA(s, x, x);
    *sine = float_of(bits_of(straight ? s : c) ^ turn_sine);
    *cosine = float_of(bits_of(straight ? c : s) ^ turn_cosine);
}

/* Box-Muller over one block of sixteen uniform numbers, in place. */
static void normal_block(float *block, float mean, float std) {
    float first[8], second[8];
    for (int k = 0; k < 8; k++) {
        float sine, cosine;
        float radius = sqrtf(-2.0f * logarithm(1.0f - block[k]));
        sine_cosine(6.283185307179586f * block[8 + k], &sine, &cosine);
        first[k] = FMA(radius * cosine, std, mean);
        second[k] = FMA(radius * sine, std, mean);
    }
    memcpy(block, first, sizeof first);
    memcpy(block + 8, second, sizeof second);
}

/* Normal numbers, sixteen or more: the last sixteen are drawn anew where `count` is no multiple of it. */
int64_t nb_mersenne_normal_f32(uint32_t *state, int64_t next, float *out, int64_t count, double mean, double std) {
    next = nb_mersenne_uniform_f32(state, next, out, count, 0.0, 1.0);
    for (int64_t begin = 0; begin + 16 <= count; begin += 16) normal_block(out + begin, (float)mean, (float)std);
    if (count % 16) {
        out += count - 16;
        next = nb_mersenne_uniform_f32(state, next, out, 16, 0.0, 1.0);
        normal_block(out, (float)mean, (float)std);
    }
    return next;
}

/* Whole numbers in [low, low + span) of one word each; span is below 2^32.
 * The remainder is exact: Lemire, Kaser and Kurz 2019, "Faster remainder by direct computation". */
int64_t nb_mersenne_integers(uint32_t *state, int64_t next, int64_t *out, int64_t count, int64_t low, int64_t span) {
    uint32_t words[CHUNK];
    uint64_t inverse = UINT64_MAX / (uint64_t)span + 1;
    for (int64_t begin = 0; begin < count; begin += CHUNK) {
        int64_t many = count - begin < CHUNK ? count - begin : CHUNK;
        next = nb_mersenne_words(state, next, words, many);
        for (int64_t i = 0; i < many; i++) {
            uint64_t fraction = inverse * words[i];
            out[begin + i] = low + (int64_t)(((unsigned __int128)fraction * (uint64_t)span) >> 64);
        }
    }
    return next;
}

/* Fisher and Yates' shuffle of 0 .. count - 1. */
int64_t nb_mersenne_permutation(uint32_t *state, int64_t next, int64_t *out, int64_t count) {
    uint32_t words[CHUNK];
    int wide = count >= (int64_t)(UINT32_MAX / 20);
    int64_t step = wide ? CHUNK / 2 : CHUNK;
    for (int64_t i = 0; i < count; i++) out[i] = i;
    for (int64_t begin = 0; begin < count - 1; begin += step) {
        int64_t many = count - 1 - begin < step ? count - 1 - begin : step;
        next = nb_mersenne_words(state, next, words, wide ? 2 * many : many);
        for (int64_t i = 0; i < many; i++) {
            uint64_t drawn = wide ? ((uint64_t)words[2 * i] << 32) | words[2 * i + 1] : words[i];
            int64_t here = begin + i, there = here + (int64_t)(drawn % (uint64_t)(count - here));
            int64_t held = out[here];
            out[here] = out[there];
            out[there] = held;
        }
    }
    return next;
}

static double next_real(uint32_t *state, int64_t *next) {
    uint32_t words[2];
    *next = nb_mersenne_words(state, *next, words, 2);
    return real53(words[0], words[1]);
}

/* Poisson numbers, one for each rate: by products below 10, else Hormann's transformed rejection (1993). */
int64_t nb_mersenne_poisson(uint32_t *state, int64_t next, const double *rates, double *out, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        double rate = rates[i], found = 0;
        if (rate >= 10) {
            double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
            double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), limit = 0.9277 - 3.6224 / (b - 2);
            for (;;) {
                double u = next_real(state, &next) - 0.5, v = next_real(state, &next), us = 0.5 - fabs(u);
                found = floor((2 * a / us + b) * u + rate + 0.43);
                if (us >= 0.07 && v <= limit) break;
                if (found < 0 || (us < 0.013 && v > us)) continue;
                if (log(v) + log(inverse_alpha) - log(a / (us * us) + b)
                    <= -rate + found * log(rate) - lgamma(found + 1)) break;
            }
        } else if (rate > 0) {
            double least = exp(-rate), product = next_real(state, &next);
            while (product > least) { found += 1; product *= next_real(state, &next); }
        }
        out[i] = found;
    }
    return next;
}

/* x * scale + shift with one rounding, in place. */
void nb_affine_f64(double *x, int64_t begin, int64_t end, double scale, double shift) {
    for (int64_t i = begin; i < end; i++) x[i] = fma(x[i], scale, shift);
}
