/* RCNBF as one would write it in C: the reference that the speed table sets our rounds beside.

   One round: draw a row, score all labels, choose, flip, learn, count the mistake. Randomness is counted (SplitMix64 at
   a position), as ours is. Dense rows meet weights by label, five labels per pass over x; sparse ones (CSR) meet weights
   by feature. K and D are constants, so that the compiler may unroll: it is compiled for each workload. */
#include <stdint.h>

typedef struct { double gamma, rho0, rho1; int64_t n; } setting;

static inline uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline double uniform(uint64_t key, uint64_t t) {
    return (double)(mix(key + (t + 1) * 0x9E3779B97F4A7C15u) >> 11) * 0x1p-53;
}

static inline int64_t best_of(const double *scores) {
    int64_t best = 0;
    for (int64_t r = 1; r < K; r++)
        if (scores[r] > scores[best]) best = r;
    return best;
}

/* The label to play, and the steps of the greedy label and of the played one; the number of mistakes so far. */
static inline int64_t play(const setting *s, uint64_t t, int64_t greedy, int64_t truth, int64_t *label, double *step) {
    double u = uniform(3, t);
    int64_t other = (int64_t)(u / s->gamma * K);
    *label = u < s->gamma ? (other < K ? other : K - 1) : greedy;
    double probability = s->gamma / K + (*label == greedy ? 1.0 - s->gamma : 0.0);
    double v = uniform(2, t);
    double bit = *label == truth ? v >= s->rho1 : v < s->rho0;
    *step = (bit - s->rho0) / ((1.0 - s->rho0 - s->rho1) * probability);
    return *label != truth;
}

int64_t rcnbf_dense(const setting *s, const double *X, const int64_t *y, double *restrict W, int64_t rounds) {
    int64_t mistakes = 0, label;
    double step, scores[K];
    for (int64_t t = 0; t < rounds; t++) {
        int64_t row = (int64_t)(uniform(1, t) * s->n);
        const double *x = X + row * D;
        int64_t r = 0;
        for (; r + 5 <= K; r += 5) {
            const double *w = W + r * D;
            double a = 0.0, b = 0.0, c = 0.0, e = 0.0, f = 0.0;
            for (int64_t j = 0; j < D; j++) {
                a += w[j] * x[j];
                b += w[j + D] * x[j];
                c += w[j + 2 * D] * x[j];
                e += w[j + 3 * D] * x[j];
                f += w[j + 4 * D] * x[j];
            }
            scores[r] = a, scores[r + 1] = b, scores[r + 2] = c, scores[r + 3] = e, scores[r + 4] = f;
        }
        for (; r < K; r++) {
            double sum = 0.0;
            for (int64_t j = 0; j < D; j++) sum += W[r * D + j] * x[j];
            scores[r] = sum;
        }
        int64_t greedy = best_of(scores);
        mistakes += play(s, t, greedy, y[row], &label, &step);
        double *up = W + label * D, *down = W + greedy * D;
        if (label == greedy)
            for (int64_t j = 0; j < D; j++) up[j] += (step - 1.0) * x[j];
        else
            for (int64_t j = 0; j < D; j++) {
                up[j] += step * x[j];
                down[j] -= x[j];
            }
    }
    return mistakes;
}

int64_t rcnbf_sparse(const setting *s, const double *data, const int32_t *indices, const int32_t *indptr,
                     const int64_t *y, double *restrict W, int64_t rounds) {
    int64_t mistakes = 0, label;
    double step;
    for (int64_t t = 0; t < rounds; t++) {
        int64_t row = (int64_t)(uniform(1, t) * s->n);
        double sums[K] = {0};
        for (int32_t j = indptr[row]; j < indptr[row + 1]; j++) {
            const double *w = W + (int64_t)indices[j] * K;
            for (int64_t r = 0; r < K; r++) sums[r] += w[r] * data[j];
        }
        int64_t greedy = best_of(sums);
        mistakes += play(s, t, greedy, y[row], &label, &step);
        for (int32_t j = indptr[row]; j < indptr[row + 1]; j++) {
            double *w = W + (int64_t)indices[j] * K;
            w[label] += step * data[j];
            w[greedy] -= data[j];
        }
    }
    return mistakes;
}
