/* Special functions, element by element over [begin, end): in double, and rounded to the array's type;
 * erf and erfc of float32 in vector code of their own.
 *
 * Chebyshev series of the Bessel functions were fitted here with mpmath (40 digits): of exp(-x) I0(x)
 * and exp(-x) I1(x) / x over [0, 8], and of sqrt(x) exp(-x) In(x) over 8 / x in [0, 1].
 * Zeta, digamma: Euler-Maclaurin sums, reflection below zero (NIST DLMF 5.5, 5.11, 25.11).
 */
#include "vector_math.h"

#define PI 3.14159265358979323846

static const double I0_NEAR[] = {
    3.3839763720473804e-1, -3.046826723431984e-1, 1.7162090152220878e-1, -9.4901097048047644e-2,
    4.9305284239670708e-2, -2.3737414805899469e-2, 1.0546460394594998e-2, -4.3243099950505759e-3,
    1.6394756169413358e-3, -5.7637557453858237e-4, 1.8850288509584166e-4, -5.7541950100821037e-5,
    1.6448448070728897e-5, -4.4167383584587506e-6, 1.1173875391201037e-6, -2.6707938539406117e-7,
    6.0469950225419189e-8, -1.300025009986248e-8, 2.6598237246823867e-9, -5.1897956016352629e-10,
    9.6758090353732369e-11, -1.7268262914415557e-11, 2.9550526631296398e-12, -4.8564467831119295e-13,
    7.6761854986049356e-14, -1.1685332877993452e-14, 1.715391285555133e-15, -2.4312798465479547e-16,
    3.3307945188222381e-17, -4.4153416464793394e-18,
};
static const double I0_FAR[] = {
    4.0224520550705442e-1, 3.3691164782556941e-3, 6.889758346916824e-5, 2.8913705208347565e-6,
    2.0489185894690637e-7, 2.2666689904981781e-8, 3.3962320257083863e-9, 4.9406023882249696e-10,
    1.1889147107846438e-11, -3.1499165279632414e-11, -1.3215811840447713e-11, -1.7941785315068061e-12,
    7.1801244513836662e-13, 3.8527783827421427e-13, 1.5400862175214098e-14, -4.1505693472872221e-14,
    -9.5548466988283065e-15, 3.8116806693526212e-15, 1.7725601330565245e-15, -3.4254856196771422e-16,
    -2.8276239805166456e-16, 3.4612228676956578e-17, 4.4656214203020775e-17, -4.8305044859640107e-18,
    -7.2331804880438443e-18, 9.921475415657038e-19, 1.1936508909418693e-18,
};
static const double I1_NEAR[] = {
    1.2629359322181683e-1, -1.7641651835783406e-1, 1.026436586898471e-1, -5.2945981208094991e-2,
    2.4726449030626517e-2, -1.0564084894626198e-2, 4.1564229443128882e-3, -1.5135724506312531e-3,
    5.1228595616857577e-4, -1.6176081582589675e-4, 4.7815651075500542e-5, -1.3273163656039436e-5,
    3.4702513081376785e-6, -8.5687202646954547e-7, 2.0032947535521353e-7, -4.4450591287963281e-8,
    9.3815373864957718e-9, -1.8872497517228293e-9, 3.625590281552117e-10, -6.6634897235020277e-11,
    1.1736186298890902e-11, -1.9839743977649437e-12, 3.2237933659455747e-13, -5.0421855047279117e-14,
    7.6006842947354069e-15, -1.1055969477353863e-15, 1.5536319577362005e-16, -2.1114212143581661e-17,
    2.7779141127610464e-18,
};
static const double I1_FAR[] = {
    3.8928811750914006e-1, -9.7610974913614684e-3, -1.1058893876262372e-4, -3.8825648088776904e-6,
    -2.5122362378702089e-7, -2.6314688468895195e-8, -3.835380385964237e-9, -5.5897434621965838e-10,
    -1.8974958123505412e-11, 3.2526035830154882e-11, 1.4125807436613781e-11, 2.0356285441470895e-12,
    -7.1985517762459085e-13, -4.0835511110921973e-13, -2.1015418427726643e-14, 4.2724400167119514e-14,
    1.0420276984128802e-14, -3.8144030724370065e-15, -1.8803547755107806e-15, 3.3082023109208502e-16,
    2.9626289976460158e-16, -3.2095259219916369e-17, -4.6503053684947829e-17, 4.414348323093937e-18,
    7.5172963110113977e-18, -9.3141788709072627e-19, -1.2421932752759928e-18,
};

static double series(const double *c, int n, double t) {
    double b0 = 0, b1 = 0, b2 = 0;
    for (int i = n - 1; i >= 0; i--) {
        b2 = b1;
        b1 = b0;
        b0 = 2 * t * b1 - b2 + c[i];
    }
    return b0 - t * b1; /* c[0] counts once */
}
#define SERIES(table, t) series(table, (int)(sizeof table / sizeof *table), t)

static double s_i0e(double x) {
    const double a = fabs(x);
    if (a <= 8) return SERIES(I0_NEAR, a / 4 - 1);
    return SERIES(I0_FAR, 16 / a - 1) / sqrt(a);
}
static double s_i1e(double x) {
    const double a = fabs(x);
    if (a <= 8) return x * SERIES(I1_NEAR, a / 4 - 1);
    return copysign(SERIES(I1_FAR, 16 / a - 1) / sqrt(a), x);
}
static double s_i0(double x) { return isinf(x) ? INFINITY : s_i0e(x) * exp(fabs(x)); }
static double s_i1(double x) { return isinf(x) ? x : s_i1e(x) * exp(fabs(x)); }

/* B(2k) / (2k)! and B(2k) / (2k), k = 1, 2, ... */
static const double ZETA_TERMS[] = {
    8.3333333333333333e-2, -1.3888888888888889e-3, 3.3068783068783069e-5, -8.2671957671957672e-7,
    2.0876756987868099e-8, -5.2841901386874932e-10, 1.3382536530684679e-11, -3.3896802963225829e-13,
    8.5860620562778446e-15, -2.1748686985580619e-16, 5.5090028283602295e-18, -1.3954464685812523e-19,
};
static const double DIGAMMA_TERMS[] = {
    0.083333333333333333, -0.0083333333333333333, 0.0039682539682539683, -0.0041666666666666667,
    0.0075757575757575758, -0.021092796092796093, 0.083333333333333333, -0.44325980392156863,
};

/* The Hurwitz zeta function: the sum of (q + k)^-x over k = 0, 1, 2, ... */
static double s_zeta(double x, double q) {
    if (isnan(x) || isnan(q) || x < 1) return NAN;
    if (x == 1) return INFINITY;
    if (q <= 0) {
        if (q == floor(q)) return INFINITY;
        if (x != floor(x)) return NAN;
    }
    if (isinf(q)) return 0;
    double sum = 0, at = q;
    for (int k = 0; k < 9 || at <= 9; k++, at += 1) {
        const double term = pow(at, -x);
        sum += term;
        if (at > 9 && fabs(term) < 1e-17 * fabs(sum)) return sum;
    }
    const double power = pow(at, -x);
    sum += power * at / (x - 1) + 0.5 * power;
    double factor = x * power / at;
    for (int k = 0; k < 12; k++) {
        const double term = ZETA_TERMS[k] * factor;
        sum += term;
        if (fabs(term) < 1e-17 * fabs(sum)) break;
        factor *= (x + 2 * k + 1) * (x + 2 * k + 2) / (at * at);
    }
    return sum;
}

static double s_digamma(double x) {
    if (x == 0) return copysign(INFINITY, -x);
    if (x < 0) {
        double whole;
        const double part = modf(x, &whole);
        if (part == 0 || isinf(x)) return NAN;
        return s_digamma(1 - x) - PI / tan(PI * part);
    }
    double sum = 0;
    for (; x < 10; x += 1) sum -= 1 / x;
    const double z = 1 / (x * x);
    double tail = 0;
    for (int k = 7; k >= 0; k--) tail = (tail + DIGAMMA_TERMS[k]) * z;
    return sum + log(x) - 0.5 / x - tail;
}

static double s_trigamma(double x) {
    if (x < 0.5 && x != floor(x)) {
        const double s = sin(PI * (x - rint(x)));
        return PI * PI / (s * s) - s_trigamma(1 - x);
    }
    return s_zeta(2, x);
}

/* The inverse of erf: Winitzki's closed form (2008), then two steps of Halley's method; near the ends by
 * erfc, so that nothing cancels. */
static double s_erfinv(double y) {
    const double a = fabs(y);
    if (!(a <= 1)) return NAN;
    if (a == 1) return copysign(INFINITY, y);
    if (a < 1e-8) return y * 0.88622692545275801365;
    const double l = log((1 - a) * (1 + a)), t = 2 / (PI * 0.147) + 0.5 * l;
    double x = sqrt(sqrt(t * t - l / 0.147) - t);
    for (int step = 0; step < 2; step++) {
        const double off = x > 0.7 ? (1 - a) - erfc(x) : erf(x) - a;
        const double u = off / (1.12837916709551257390 * exp(-x * x));
        x -= u / (1 + x * u);
    }
    return copysign(x, y);
}

static inline float s_erf_float(float x) {
    const float z = x * x;
    float p = 1.058938064e-06f;
    p = p * z - 1.390934002e-05f;
    p = p * z + 1.195656257e-04f;
    p = p * z - 8.542637997e-04f;
    p = p * z + 5.223783477e-03f;
    p = p * z - 2.686613324e-02f;
    p = p * z + 1.128379131e-01f;
    p = p * z - 3.761263889e-01f;
    p = p * z + 1.128379167e+00f;
    float bell;
    const float far = 1.0f - 2.0f * v_tail(x * 1.41421356237f, &bell);
    /* The tail takes NaN for a large number, the polynomial passes it on. */
    return fabsf(x) >= 1.0f ? copysignf(far, x) : p * x;
}

#define OVER(name, type, expression)                                                              \
    void nb_##name(const type *x, type *out, int64_t begin, int64_t end) {                        \
        for (int64_t i = begin; i < end; i++) out[i] = (type)(expression);                        \
    }
#define OVER_BOTH(name, function)                                                                 \
    OVER(name##_f64, double, function(x[i]))                                                      \
    OVER(name##_f32, float, function((double)x[i]))

OVER(erf_f32, float, s_erf_float(x[i]))
OVER(erf_f64, double, erf(x[i]))
OVER_BOTH(erfc, erfc)
OVER_BOTH(erfinv, s_erfinv)
OVER_BOTH(lgamma, lgamma)
OVER_BOTH(digamma, s_digamma)
OVER_BOTH(trigamma, s_trigamma)
OVER_BOTH(i0, s_i0)
OVER_BOTH(i0e, s_i0e)
OVER_BOTH(i1, s_i1)
OVER_BOTH(i1e, s_i1e)

void nb_zeta(const double *x, const double *q, double *out, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) out[i] = s_zeta(x[i], q[i]);
}
