/* DS-TS in plain C, no intrinsics: what `python -m benchmarks.speed` holds the compiled Python against.

   Two loops with the same state and the same arithmetic a round as the package: `single` plays one run with xoshiro256++
   (Blackman and Vigna 2018) and a ziggurat for the normals (Marsaglia and Tsang 2000), the usual fast choice; `lanes`
   plays 32 runs side by side, lanes innermost, with Box-Muller from polynomials and selects in place of branches, which
   a compiler turns into vector code by itself. Built with: cc -O3 -march=native -fno-math-errno -fno-trapping-math */

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LANES 32
#define MOST 128

static inline uint64_t rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

static inline uint64_t next(uint64_t s[4]) {
    uint64_t out = rotl(s[0] + s[3], 23) + s[0], held = s[1] << 17;
    s[2] ^= s[0]; s[3] ^= s[1]; s[1] ^= s[2]; s[0] ^= s[3]; s[2] ^= held; s[3] = rotl(s[3], 45);
    return out;
}

static uint64_t splitmix(uint64_t *x) {
    uint64_t z = (*x += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline double unit(uint64_t bits) { return (double)(bits >> 11) * 0x1p-53; }

/* ---- one run, ziggurat of 256 layers ---- */

static double edge[257], height[257];

static void make_layers(void) {
    const double right = 3.6541528853610088, area = 0.00492867323399;
    if (edge[1] > 0.0) return;
    edge[0] = area / exp(-0.5 * right * right);
    edge[1] = right;
    for (int i = 2; i < 256; i++)
        edge[i] = sqrt(-2.0 * log(area / edge[i - 1] + exp(-0.5 * edge[i - 1] * edge[i - 1])));
    edge[256] = 0.0;
    for (int i = 0; i < 257; i++) height[i] = exp(-0.5 * edge[i] * edge[i]);
}

static inline double normal(uint64_t s[4]) {
    for (;;) {
        uint64_t b = next(s);
        int i = (int)(b & 255);
        double x = unit(b) * edge[i], sign = (b & 256) ? -1.0 : 1.0;
        if (x < edge[i + 1]) return sign * x;
        if (i == 0) {
            double y;
            do {
                x = -log(1.0 - unit(next(s))) / edge[1];
                y = -log(1.0 - unit(next(s)));
            } while (y + y < x * x);
            return sign * (x + edge[1]);
        }
        if (height[i] + unit(next(s)) * (height[i + 1] - height[i]) < exp(-0.5 * x * x)) return sign * x;
    }
}

/* The mean regret of `runs` runs, one after the other; `table` holds runs x phases x arms means. */
double single(const double *table, int runs, int phases, int arms, int horizon, double gamma, double tau, uint64_t seed) {
    double pulls[MOST], mean[MOST], spread[MOST], total = 0.0, growth = 1.0 / sqrt(gamma);
    make_layers();
    for (int run = 0; run < runs; run++) {
        uint64_t s[4], x = seed + (uint64_t)run * 1000003u;
        for (int i = 0; i < 4; i++) s[i] = splitmix(&x);
        for (int i = 0; i < arms; i++) { pulls[i] = mean[i] = 0.0; spread[i] = INFINITY; }
        double regret = 0.0;
        for (int phase = 0; phase < phases; phase++) {
            const double *row = table + ((long)run * phases + phase) * arms;
            double best_mean = row[0];
            for (int i = 1; i < arms; i++) best_mean = row[i] > best_mean ? row[i] : best_mean;
            int stop = (int)((long)(phase + 1) * horizon / phases);
            for (int t = (int)((long)phase * horizon / phases); t < stop; t++) {
                int arm = 0;
                double top = -INFINITY;
                for (int i = 0; i < arms; i++) {
                    double width = spread[i] < tau ? spread[i] : tau, score = mean[i] + width * normal(s);
                    if (score > top) { top = score; arm = i; }
                }
                double reward = unit(next(s)) < row[arm] ? 1.0 : 0.0;
                for (int i = 0; i < arms; i++) { pulls[i] *= gamma; spread[i] *= growth; }
                pulls[arm] += 1.0;
                spread[arm] = 1.0 / sqrt(pulls[arm]);
                mean[arm] += (reward - mean[arm]) / pulls[arm];
                regret += best_mean - row[arm];
            }
        }
        total += regret;
    }
    return total / runs;
}

/* ---- 32 runs side by side ---- */

typedef uint64_t Words[LANES];
typedef double Row[LANES];

static inline double from_bits(uint64_t b) { double x; memcpy(&x, &b, 8); return x; }
static inline uint64_t to_bits(double x) { uint64_t b; memcpy(&b, &x, 8); return b; }

static inline void next_row(Words s[4], Words out) {
    for (int l = 0; l < LANES; l++) {
        uint64_t a = s[0][l], b = s[1][l], c = s[2][l], d = s[3][l];
        out[l] = rotl(a + d, 23) + a;
        uint64_t held = b << 17;
        c ^= a; d ^= b; b ^= c; a ^= d; c ^= held; d = rotl(d, 45);
        s[0][l] = a; s[1][l] = b; s[2][l] = c; s[3][l] = d;
    }
}

/* Natural logarithm of a number in (0, 1], right to about 1e-13. */
static inline double log_unit(double x) {
    int64_t raw = (int64_t)to_bits(x), k = (raw - 0x3FE6A09E667F3BCD) >> 52;
    double f = from_bits((uint64_t)(raw - (k << 52))) - 1.0, s = f / (2.0 + f), z = s * s;
    double p = 2.0 / 3 + z * (0.4 + z * (2.0 / 7 + z * (2.0 / 9 + z * (2.0 / 11 + z * (2.0 / 13 + z * (2.0 / 15))))));
    double whole = from_bits((uint64_t)(k + 0x4338000000000000)) - 6755399441055744.0;
    return whole * 0.6931471805599453 + (2.0 * s + s * (z * p));
}

static inline void normal_rows(Words s[4], Row x, Row y) {
    Words first, second;
    next_row(s, first);
    next_row(s, second);
    for (int l = 0; l < LANES; l++) {
        double radius = sqrt(-2.0 * log_unit(2.0 - from_bits((first[l] >> 12) | 0x3FF0000000000000u)));
        double a = (from_bits((second[l] >> 12) | 0x3FF0000000000000u) - 1.5) * 1.5707963267948966, z = a * a;
        double sine = a * (1 + z * (-1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880 + z * (-1.0 / 39916800))))));
        double cosine = 1 + z * (-0.5 + z * (1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 + z * (-1.0 / 3628800
                        + z / 479001600)))));
        double swapped = (second[l] & 4) ? 1.0 : 0.0;
        double u = swapped * sine + (1.0 - swapped) * cosine, v = swapped * cosine + (1.0 - swapped) * sine;
        x[l] = radius * from_bits(to_bits(u) ^ (second[l] << 63));
        y[l] = radius * from_bits(to_bits(v) ^ ((second[l] << 62) & 0x8000000000000000u));
    }
}

/* As `single`, in groups of 32 runs; `table` holds groups x phases x arms x 32 means. */
double lanes(const double *table, int groups, int phases, int arms, int horizon, double gamma, double tau, uint64_t seed) {
    static _Thread_local Row pulls[MOST], mean[MOST], spread[MOST], noise[MOST + 1];
    double total = 0.0, growth = 1.0 / sqrt(gamma);
    for (int group = 0; group < groups; group++) {
        Words s[4], bits;
        uint64_t x = seed + (uint64_t)group * 1000003u;
        for (int i = 0; i < 4; i++) for (int l = 0; l < LANES; l++) s[i][l] = splitmix(&x);
        for (int i = 0; i < arms; i++)
            for (int l = 0; l < LANES; l++) { pulls[i][l] = mean[i][l] = 0.0; spread[i][l] = INFINITY; }
        Row regret = {0};
        for (int phase = 0; phase < phases; phase++) {
            const Row *rows = (const Row *)(table + ((long)group * phases + phase) * arms * LANES);
            Row best_mean;
            for (int l = 0; l < LANES; l++) best_mean[l] = rows[0][l];
            for (int i = 1; i < arms; i++)
                for (int l = 0; l < LANES; l++) best_mean[l] = rows[i][l] > best_mean[l] ? rows[i][l] : best_mean[l];
            int stop = (int)((long)(phase + 1) * horizon / phases);
            for (int t = (int)((long)phase * horizon / phases); t < stop; t++) {
                Row top;
                int64_t arm[LANES];
                for (int i = 0; i < arms; i += 2) normal_rows(s, noise[i], noise[i + 1]);
                for (int l = 0; l < LANES; l++) { top[l] = -INFINITY; arm[l] = 0; }
                for (int i = 0; i < arms; i++)
                    for (int l = 0; l < LANES; l++) {
                        double width = spread[i][l] < tau ? spread[i][l] : tau, score = mean[i][l] + width * noise[i][l];
                        arm[l] = score > top[l] ? i : arm[l];
                        top[l] = score > top[l] ? score : top[l];
                        pulls[i][l] *= gamma;
                        spread[i][l] *= growth;
                    }
                next_row(s, bits);
                for (int l = 0; l < LANES; l++) {
                    int64_t a = arm[l];
                    double chance = rows[a][l], reward = unit(bits[l]) < chance ? 1.0 : 0.0, n = pulls[a][l] + 1.0;
                    pulls[a][l] = n;
                    spread[a][l] = 1.0 / sqrt(n);
                    mean[a][l] += (reward - mean[a][l]) / n;
                    regret[l] += best_mean[l] - chance;
                }
            }
        }
        for (int l = 0; l < LANES; l++) total += regret[l];
    }
    return total / ((double)groups * LANES);
}
