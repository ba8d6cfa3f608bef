// One pass of the upper bound of docs/design/bound.md, for the kernel for many subjects.
//
// Inputs: rows of a query and four columns of the subjects, as for the exact pass (many_subjects.hpp). Output: the
// largest E, from which the kernel computes an upper bound of each score. kRows query rows form a band; the last one is
// completed with rows that score kPadding. docs/design/cpu-engine.md counts the operations.

#pragma once

#include "score/kernel.hpp"

namespace swsearch::score {
namespace {

// What is stored of a band between two passes: K of each row in the last column, and E of the next column. A band of
// one row has the exact H and E.
template <class Lane, int kVectors, int kRows>
struct Band {
    typename Lane::V k[kRows][kVectors];
    typename Lane::V e[kVectors];
};

template <class Lane, int kVectors, int kRows>
struct Bands {
    using V = typename Lane::V;
    using Codes = typename Lane::Codes;
    using Stored = Band<Lane, kVectors, kRows>;
    static constexpr int kColumns = kColumnsPerPass;

    // Computes n_rows rows from first_row on, in bands of which `bands` is the first. Row kProfileRows of the profile
    // scores kPadding; `row_scores` has a row of scores for each of the rows, completed in the same way. top_k and
    // top_f are K and F above the first row, and become those below the last band; `corner` is K above the first row in
    // the column before. `best` is raised to the largest E.
    template <bool kLookUp>
    [[gnu::always_inline]] static void pass(const Query& query, int32_t first_row, int32_t n_rows, Stored* bands,
                                            const V* profile, const int8_t* row_scores,
                                            const Codes (&residues)[kColumns][kVectors], V (&top_k)[kColumns][kVectors],
                                            V (&top_f)[kColumns][kVectors], const V (&corner)[kVectors], V* best) {
        const int32_t first_cost = query.open + query.extend;
        const int32_t rows_cost = kRows * query.extend;
        const V first = Lane::cost(first_cost);
        const V extend = Lane::cost(query.extend);
        const V band_cost = Lane::cost(rows_cost < first_cost ? rows_cost : first_cost);
        V bottom[kColumns][kVectors];  // K of the row above
        V f[kColumns][kVectors];
        V corner_above[kVectors];
        V peak[kVectors];
        for (int v = 0; v < kVectors; ++v) {
            corner_above[v] = corner[v];
            peak[v] = best[v];
            for (int c = 0; c < kColumns; ++c) {
                bottom[c][v] = top_k[c][v];
                f[c][v] = top_f[c][v];
            }
        }
        const int32_t* const rows = query.rows + first_row;
        const int32_t n_complete = n_rows / kRows;
        const int32_t n_bands = (n_rows + kRows - 1) / kRows;
        int32_t last_band[kRows];
        for (int i = 0; i < kRows; ++i) {
            const int32_t row = n_complete * kRows + i;
            last_band[i] = row < n_rows ? rows[row] : kProfileRows;
        }
        for (int32_t b = 0; b < n_bands; ++b) {
            const int32_t* const numbers = b < n_complete ? rows + static_cast<ptrdiff_t>(b) * kRows : last_band;
            const V* scores[kRows];
            const int8_t* letters[kRows];
            for (int i = 0; i < kRows; ++i) {
                if (kLookUp) {
                    letters[i] = row_scores + (static_cast<ptrdiff_t>(b) * kRows + i) * kCodes;
                } else {
                    scores[i] = profile + static_cast<ptrdiff_t>(numbers[i]) * (kColumns * kVectors);
                }
            }
            V k[kRows][kVectors];
            V e[kVectors];
            V diagonal[kVectors];
            for (int v = 0; v < kVectors; ++v) {
                e[v] = bands[b].e[v];
#pragma GCC unroll 8
                for (int i = 0; i < kRows; ++i) {
                    k[i][v] = bands[b].k[i][v];
                }
                diagonal[v] = corner_above[v];
                corner_above[v] = k[kRows - 1][v];
            }
#pragma GCC unroll 4
            for (int c = 0; c < kColumns; ++c) {
#pragma GCC unroll 2
                for (int v = 0; v < kVectors; ++v) {
                    // From the last row to the first, each t replaces a K that no other row needs any more.
#pragma GCC unroll 8
                    for (int i = kRows - 1; i >= 0; --i) {
                        const V s = kLookUp ? Lane::look_up(letters[i], residues[c][v]) : scores[i][c * kVectors + v];
                        k[i][v] = Lane::add_raised(i > 0 ? k[i - 1][v] : diagonal[v], s);
                    }
                    V highest = k[0][v];
#pragma GCC unroll 8
                    for (int i = 1; i < kRows; ++i) {
                        highest = Lane::max(highest, k[i][v]);
                    }
                    const V opened = Lane::subtract(highest, first);
                    const V gap = Lane::max(Lane::max(Lane::at_least_zero(e[v]), f[c][v]), opened);
#pragma GCC unroll 8
                    for (int i = 0; i < kRows; ++i) {
                        // Additions that wrap share the other port, so only every second maximum is moved to it; with
                        // look-ups, which need this port, only one of a band.
                        const bool apart = Lane::kRoom == 0 || (kLookUp ? i == 1 : i % 2 == 1);
                        k[i][v] = apart ? Lane::max_apart(k[i][v], gap) : Lane::max(k[i][v], gap);
                    }
                    e[v] = Lane::max(Lane::subtract(e[v], extend), opened);
                    f[c][v] = Lane::max(Lane::subtract(gap, band_cost), opened);
                    diagonal[v] = bottom[c][v];
                    bottom[c][v] = k[kRows - 1][v];
                }
            }
            for (int v = 0; v < kVectors; ++v) {
                bands[b].e[v] = e[v];
                peak[v] = Lane::max(peak[v], e[v]);
#pragma GCC unroll 8
                for (int i = 0; i < kRows; ++i) {
                    bands[b].k[i][v] = k[i][v];
                }
            }
        }
        for (int v = 0; v < kVectors; ++v) {
            best[v] = peak[v];
            for (int c = 0; c < kColumns; ++c) {
                top_k[c][v] = bottom[c][v];
                top_f[c][v] = f[c][v];
            }
        }
    }
};

}  // namespace
}  // namespace swsearch::score
