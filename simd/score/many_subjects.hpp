// The kernel for many subjects: O. Gotoh's recurrence for local scores (J. Mol. Biol. 162:705, 1982), one subject per
// lane. docs/design/cpu-engine.md has the order of the operations, the score profile, and the blocks of rows.
//
// Inputs: the queries, and the residues of up to kMaxLanes subjects. Output: an int32 score, or a bound, per query and
// subject. Several queries are computed against the same four columns one after another, each with its own cells. For a
// query with more table rows than fit the profile, such as a position-specific matrix, the inner loop looks up scores.
//
// Exactness. An optimal alignment ends with a pair, so the best U is the best H. A score below the largest number of
// the lane is exact; a lane that reaches this number is reported as kSaturated. 32 bits represent any score, because a
// query has at most 2^24 residues (lanes.hpp).
//
// Bounds. The kernels for bounds (kBandRows > 0) do not compute the maximum of U, but the largest E after every four
// columns (docs/design/bound.md). Those of bands of one row compute the exact cells. Padding cells have values below
// those of their neighbours.

#pragma once

#include "score/bands.hpp"
#include "score/columns.hpp"
#include "score/kernel.hpp"

namespace swsearch::score {
namespace {

template <class Lane, int kVectors>
struct ManySubjects {
    using V = typename Lane::V;
    using Codes = typename Lane::Codes;
    static constexpr int kVectorLanes = Lane::kLanes;
    static constexpr int kLanes = kVectorLanes * kVectors;
    static constexpr int kColumns = kColumnsPerPass;
    using BatchColumns = Columns<kLanes>;
    static constexpr int kStride = BatchColumns::kStride;

    using Cell = Band<Lane, kVectors, 1>;  // H and E
    struct Border {
        V h[kVectors];
        V f[kVectors];
    };

    static size_t round_up(size_t bytes) { return (bytes + 63) & ~size_t{63}; }

    // Residues are read one complete vector at a time, so the buffer has one vector more than they need.
    static size_t columns_bytes() { return round_up(static_cast<size_t>(kStride) * kBlockColumns) + 64; }

    // The row after the table's rows scores -128: it completes bands.
    static size_t profile_bytes() { return sizeof(V) * kVectors * kColumns * (kProfileRows + 1); }

    static uint32_t padded(uint32_t length) { return (length + kBlockColumns - 1) / kBlockColumns * kBlockColumns; }

    // Rows whose H and E are stored at a time: those of all queries, or a block of one query. If each query is
    // completed to kMaxBandRows rows, bands of any size fit the same memory.
    static size_t stored_rows(const Query* queries, int n_queries) {
        size_t rows = 0;
        for (int q = 0; q < n_queries; ++q) {
            rows += (static_cast<size_t>(queries[q].length) + kMaxBandRows - 1) / kMaxBandRows * kMaxBandRows;
        }
        return n_queries == 1 && rows > kBlockRows ? kBlockRows : rows;
    }

    // The scores of each row of a block, for queries without a profile; the last band has kMaxBandRows - 1 rows more at
    // most.
    static size_t row_scores_bytes(const Query& query) {
        const int32_t n_rows = query.length < kBlockRows ? query.length : kBlockRows;
        return query.n_rows > kProfileRows ? static_cast<size_t>(n_rows + kMaxBandRows - 1) * kCodes : 0;
    }

    static size_t scratch_bytes(const Query* queries, int n_queries, uint32_t longest) {
        size_t bytes = round_up(sizeof(Cell) * stored_rows(queries, n_queries));
        bytes += round_up(sizeof(V) * kVectors * static_cast<size_t>(n_queries));
        bytes += round_up(profile_bytes()) + round_up(row_scores_bytes(queries[0])) + columns_bytes();
        if (queries[0].length > kBlockRows) {
            bytes += round_up(sizeof(Border) * padded(longest));
        }
        return bytes;
    }

    // Saturating operations are issued in pairs, then maxima in pairs. Zen 4 can execute the former on two of its four
    // pipes and assigns pipes in order, so strict alternation fills the wrong ones (5.0 cycles instead of 4.0 for 4 +
    // 4).
    //
    // If the pass is not inlined, the compiler keeps H and F of the row above in memory, which costs a third more
    // instructions.
    template <bool kLookUp, bool kBound>
    [[gnu::always_inline]] static void pass_rows(const Query& query, int32_t first_row, int32_t n_rows, Cell* cells,
                                                 const V* profile, const int8_t* row_scores,
                                                 const Codes (&residues)[kColumns][kVectors],
                                                 V (&top_h)[kColumns][kVectors], V (&top_f)[kColumns][kVectors],
                                                 const V (&corner)[kVectors], V* best) {
        const V first = Lane::cost(query.open + query.extend);
        const V extend = Lane::cost(query.extend);
        V h[kColumns][kVectors];
        V f[kColumns][kVectors];
        V diagonal[kVectors];
        V peak[kVectors];
        for (int v = 0; v < kVectors; ++v) {
            diagonal[v] = corner[v];
            peak[v] = best[v];
            for (int c = 0; c < kColumns; ++c) {
                h[c][v] = top_h[c][v];
                f[c][v] = top_f[c][v];
            }
        }
        const int32_t* rows = query.rows + first_row;
        for (int32_t i = 0; i < n_rows; ++i) {
            const V* scores = profile + static_cast<ptrdiff_t>(rows[i]) * (kColumns * kVectors);
            const int8_t* row = row_scores + static_cast<ptrdiff_t>(i) * kCodes;
            V d[kVectors];
            V e[kVectors];
#pragma GCC unroll 2
            for (int v = 0; v < kVectors; ++v) {
                e[v] = cells[i].e[v];
                d[v] = diagonal[v];
                diagonal[v] = cells[i].k[0][v];
            }
#pragma GCC unroll 4
            for (int c = 0; c < kColumns; ++c) {
                V u[kVectors];
                V opened[kVectors];
                V longer_f[kVectors];
                V longer_e[kVectors];
#pragma GCC unroll 2
                for (int v = 0; v < kVectors; ++v) {
                    const V s = kLookUp ? Lane::look_up(row, residues[c][v]) : scores[c * kVectors + v];
                    u[v] = Lane::add_score(d[v], s);
                    longer_f[v] = Lane::subtract(f[c][v], extend);
                    Vectors::keep_order(u[v], longer_f[v]);
                }
#pragma GCC unroll 2
                for (int v = 0; v < kVectors; ++v) {
                    u[v] = Lane::max(u[v], f[c][v]);
                    d[v] = h[c][v];
                    // Subtractions that wrap share the other port, so only one of two maxima is moved to it.
                    h[c][v] = Lane::kRoom == 0 ? Lane::max_apart(u[v], e[v]) : Lane::max(u[v], e[v]);
                    Vectors::keep_order(u[v], h[c][v]);
                    if (!kBound) {
                        peak[v] = Lane::max(peak[v], u[v]);
                    }
                }
#pragma GCC unroll 2
                for (int v = 0; v < kVectors; ++v) {
                    opened[v] = Lane::subtract(u[v], first);
                    longer_e[v] = Lane::subtract(e[v], extend);
                    Vectors::keep_order(opened[v], longer_e[v]);
                }
#pragma GCC unroll 2
                for (int v = 0; v < kVectors; ++v) {
                    f[c][v] = Lane::at_least_zero(Lane::max_apart(longer_f[v], opened[v]));
                    e[v] = Lane::max(longer_e[v], opened[v]);
                    Vectors::keep_order(f[c][v], e[v]);
                }
            }
#pragma GCC unroll 2
            for (int v = 0; v < kVectors; ++v) {
                cells[i].k[0][v] = h[kColumns - 1][v];
                cells[i].e[v] = e[v];
                if (kBound) {
                    peak[v] = Lane::max(peak[v], e[v]);
                }
            }
        }
        for (int v = 0; v < kVectors; ++v) {
            best[v] = peak[v];
            for (int c = 0; c < kColumns; ++c) {
                top_h[c][v] = h[c][v];
                top_f[c][v] = f[c][v];
            }
        }
    }

    template <bool kLookUp, int kBandRows, class Stored>
    [[gnu::always_inline]] static void pass(const Query& query, int32_t first_row, int32_t n_rows, Stored* bands,
                                            const V* profile, const int8_t* row_scores,
                                            const Codes (&residues)[kColumns][kVectors], V (&top_h)[kColumns][kVectors],
                                            V (&top_f)[kColumns][kVectors], const V (&corner)[kVectors], V* best) {
        if constexpr (kBandRows > 1) {
            Bands<Lane, kVectors, kBandRows>::template pass<kLookUp>(query, first_row, n_rows, bands, profile,
                                                                     row_scores, residues, top_h, top_f, corner, best);
        } else {
            pass_rows<kLookUp, kBandRows == 1>(query, first_row, n_rows, bands, profile, row_scores, residues, top_h,
                                               top_f, corner, best);
        }
    }

    static void compute_profile(const int8_t* table, int32_t n_rows, const Codes (&residues)[kColumns][kVectors],
                                V* profile) {
        for (int32_t row = 0; row < n_rows; ++row) {
            for (int c = 0; c < kColumns; ++c) {
                for (int v = 0; v < kVectors; ++v) {
                    profile[(row * kColumns + c) * kVectors + v] = Lane::look_up(table + row * kCodes, residues[c][v]);
                }
            }
        }
    }

    // Copies rows of scores, as passes add them.
    template <int kBandRows>
    static void copy_scores(const int8_t* from, ptrdiff_t n_rows, int8_t* to) {
        for (ptrdiff_t i = 0; i < n_rows * kCodes; ++i) {
            to[i] = kBandRows > 1 ? Lane::raised(from[i]) : from[i];
        }
    }

    // Copies the scores of each row of a block, so that passes read them in order, and adds rows that complete the last
    // band.
    template <int kBandRows>
    static void gather_row_scores(const Query& query, int32_t first_row, int32_t n_rows, int8_t* to) {
        for (int32_t i = 0; i < n_rows; ++i) {
            copy_scores<kBandRows>(query.table + static_cast<ptrdiff_t>(query.rows[first_row + i]) * kCodes, 1,
                                   to + static_cast<ptrdiff_t>(i) * kCodes);
        }
        for (ptrdiff_t i = ptrdiff_t{n_rows} * kCodes; i < (ptrdiff_t{n_rows} + kBandRows - 1) * kCodes; ++i) {
            to[i] = static_cast<int8_t>(Lane::kPadding);
        }
    }

    // The parts of the scratch memory.
    struct Memory {
        uint8_t* bands;
        size_t bands_bytes;
        V* best;  // kVectors per query
        V* profile;
        int8_t* row_scores;
        uint8_t* columns;
        Border* border;  // last row of the block above, one element per column

        Memory(uint8_t* scratch, const Query* queries, int n_queries)
            : bands(scratch), bands_bytes(round_up(sizeof(Cell) * stored_rows(queries, n_queries))) {
            scratch += bands_bytes;
            best = reinterpret_cast<V*>(scratch);
            scratch += round_up(sizeof(V) * kVectors * static_cast<size_t>(n_queries));
            profile = reinterpret_cast<V*>(scratch);
            scratch += round_up(profile_bytes());
            row_scores = reinterpret_cast<int8_t*>(scratch);
            scratch += round_up(row_scores_bytes(queries[0]));
            columns = scratch;
            border = reinterpret_cast<Border*>(scratch + columns_bytes());
        }
    };

    // Computes rows first_row to first_row + n_rows - 1 of a query in four columns. `border` belongs to these columns.
    // `corner` is H of the row above in the column before them, and becomes that of their last column.
    template <int kBandRows, class Stored>
    static void pass_query(const Query& query, int32_t first_row, int32_t n_rows, Stored* bands, const Memory& memory,
                           const Codes (&residues)[kColumns][kVectors], Border* border, V (&corner)[kVectors],
                           V* best) {
        const V zero = Lane::zero();
        V h[kColumns][kVectors];
        V f[kColumns][kVectors];
        V next_corner[kVectors];
        for (int v = 0; v < kVectors; ++v) {
            for (int c = 0; c < kColumns; ++c) {
                h[c][v] = first_row == 0 ? zero : border[c].h[v];
                f[c][v] = first_row == 0 ? zero : border[c].f[v];
            }
            next_corner[v] = h[kColumns - 1][v];
        }
        if (query.n_rows > kProfileRows) {
            pass<true, kBandRows>(query, first_row, n_rows, bands, memory.profile, memory.row_scores, residues, h, f,
                                  corner, best);
        } else {
            pass<false, kBandRows>(query, first_row, n_rows, bands, memory.profile, memory.row_scores, residues, h, f,
                                   corner, best);
        }
        const bool more = first_row + n_rows < query.length;
        for (int v = 0; v < kVectors; ++v) {
            corner[v] = next_corner[v];
            for (int c = 0; more && c < kColumns; ++c) {
                border[c].h[v] = h[c][v];
                border[c].f[v] = f[c][v];
            }
        }
    }

    // kBandRows is 0 for exact scores; otherwise the kernel computes bounds.
    template <int kBandRows>
    static void score(const Query* queries, int n_queries, const Subject* subjects, int n, uint8_t* scratch,
                      int32_t* scores, const Control& control) {
        const BatchColumns batch(subjects, n);
        const Memory memory(scratch, queries, n_queries);
        const V zero = Lane::zero();
        for (int i = 0; i < n_queries * kVectors; ++i) {
            memory.best[i] = zero;
        }
        for (int i = 0; i < kColumns * kVectors; ++i) {
            memory.profile[kProfileRows * kColumns * kVectors + i] = Lane::splat(Lane::kPadding);
        }
        // Scores that bounds add without saturation are raised once, in a copy.
        const bool has_profile = queries[0].n_rows <= kProfileRows;
        int8_t table[kProfileRows * kCodes];
        if (has_profile) {
            copy_scores<kBandRows>(queries[0].table, queries[0].n_rows, table);
        }
        constexpr int kRows = kBandRows > 1 ? kBandRows : 1;
        static_assert(kRows <= kMaxBandRows && kBlockRows % kRows == 0, "a block consists of complete bands");
        using Stored = Band<Lane, kVectors, kRows>;
        // Several queries have no more rows than one block.
        const int32_t longest_query = n_queries == 1 ? queries[0].length : 1;
        for (int32_t first_row = 0; first_row < longest_query; first_row += kBlockRows) {
            V corner[kVectors];
            for (int v = 0; v < kVectors; ++v) {
                corner[v] = zero;
            }
            for (size_t i = 0; i < memory.bands_bytes / sizeof(V); ++i) {
                reinterpret_cast<V*>(memory.bands)[i] = zero;
            }
            if (!has_profile) {
                const int32_t left = longest_query - first_row;
                gather_row_scores<kBandRows>(queries[0], first_row, left < kBlockRows ? left : kBlockRows,
                                             memory.row_scores);
            }
            for (uint32_t column = 0; column < batch.longest(); column += kColumns) {
                if (column % kBlockColumns == 0) {
                    if (__atomic_load_n(control.stop, __ATOMIC_RELAXED) != 0) {
                        return;
                    }
                    batch.transpose(column, memory.columns);
                }
                const uint8_t* transposed = memory.columns + size_t{column % kBlockColumns} * kStride;
                Codes residues[kColumns][kVectors];
                for (int c = 0; c < kColumns; ++c) {
                    for (int v = 0; v < kVectors; ++v) {
                        residues[c][v] = Vectors::codes_of(Vectors::load(transposed + c * kStride + v * kVectorLanes));
                    }
                }
                if (has_profile) {
                    compute_profile(table, queries[0].n_rows, residues, memory.profile);
                }
                Stored* bands = reinterpret_cast<Stored*>(memory.bands);
                for (int q = 0; q < n_queries; ++q) {
                    const int32_t left = queries[q].length - first_row;
                    const int32_t n_rows = left < kBlockRows ? left : kBlockRows;
                    pass_query<kBandRows>(queries[q], first_row, n_rows, bands, memory, residues,
                                          memory.border + column, corner, memory.best + q * kVectors);
                    bands += (n_rows + kRows - 1) / kRows;
                }
            }
        }
        for (int q = 0; q < n_queries; ++q) {
            read_scores<kBandRows>(queries[q], memory.best + q * kVectors, n, scores + q * n);
        }
    }

    // The smallest bound that is reported as kSaturated.
    template <int kBandRows>
    static constexpr int32_t largest() {
        return kBandRows > 1 ? Lane::kLargestBound : Lane::kLargest;
    }

    template <int kBandRows>
    static void read_scores(const Query& query, const V* best, int n, int32_t* scores) {
        for (int v = 0; v < kVectors; ++v) {
            int32_t values[kVectorLanes];
            Lane::values(best[v], values);
            for (int lane = 0; lane < kVectorLanes && v * kVectorLanes + lane < n; ++lane) {
                int32_t value = values[lane];
                if (kBandRows > 0 && value != kSaturated) {
                    value += query.open + kColumns * query.extend;
                    value = value < largest<kBandRows>() ? value : kSaturated;
                }
                scores[v * kVectorLanes + lane] = value;
            }
        }
    }
};

}  // namespace
}  // namespace swsearch::score
