// The three matrices of a pairwise alignment cell by cell, by their definition, and the ends of local alignments
// (full_matrix.py).

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

// Finds the best local score and, of the nodes that have it, the one in the smallest column, then in the smallest row:
// `found` is score, row and column. `table` has 32 scores a row. `h` and `e` are one column each of m + 1 nodes, as they
// are left of column 1.
void local_end(const int8_t* table, const int32_t* rows, int64_t m, const uint8_t* codes, int64_t n, int64_t first,
               int64_t extend, int64_t* h, int64_t* e, int64_t* found) {
    for (int64_t j = 1; j <= n; ++j) {
        int64_t before = h[0], f = e[0];
        for (int64_t i = 1; i <= m; ++i) {
            e[i] = larger(h[i] - first, e[i] - extend);
            f = larger(h[i - 1] - first, f - extend);
            const int64_t paired = before + table[32 * rows[i - 1] + (codes[j - 1] & 31)];
            before = h[i];
            h[i] = larger(larger(paired, 0), larger(e[i], f));
            if (h[i] > found[0]) found[0] = h[i], found[1] = i, found[2] = j;
        }
    }
}
