// Fills the three matrices of a pairwise alignment cell by cell, by their definition (full_matrix.py).

#include <stdint.h>

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

// The matrices have m + 1 rows of n + 1 nodes; row 0 and column 0 are the caller's. `scores` has m rows of n cells.
void fill(const int64_t* scores, int64_t m, int64_t n, int64_t first, int64_t extend, int64_t floor, int64_t* h,
          int64_t* e, int64_t* f) {
    const int64_t width = n + 1;
    for (int64_t i = 1; i <= m; ++i) {
        for (int64_t j = 1; j <= n; ++j) {
            const int64_t here = i * width + j, left = here - 1, above = here - width;
            e[here] = larger(h[left] - first, e[left] - extend);
            f[here] = larger(h[above] - first, f[above] - extend);
            const int64_t paired = h[above - 1] + scores[(i - 1) * n + j - 1];
            h[here] = larger(larger(paired, floor), larger(e[here], f[here]));
        }
    }
}
