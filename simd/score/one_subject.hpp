// The kernel for one long subject: the query lies in the lanes, striped (Farrar 2007).
//
// Lane l of vector s holds query position l * n_stripes + s, so that the vectors of one column depend on one another only
// through F, which runs down the stripes; where it leaves a lane at the last stripe it enters the next lane at the
// first, and a second walk (the lazy loop) carries it on for as long as it can still raise a cell. A gap that opens in E
// right after one in F is worth no more than the same two gaps in the other order, so E need not hear of the second walk.
//
// The numbers are those of the kernel for many subjects.

#pragma once

#include "score/kernel.hpp"

namespace swsearch::score {
namespace {

template <class Lane>
struct OneSubject {
    using V = typename Lane::V;
    static constexpr int kLanes = Lane::kLanes;
    static constexpr uint32_t kReportVectors = 1 << 20;  // vectors of cells between two looks at the control

    static int32_t stripes(const Query& query) { return (query.length + kLanes - 1) / kLanes; }

    static size_t scratch_bytes(const Query& query) {
        // H of two columns, E, and the scores of every subject letter.
        return sizeof(V) * static_cast<size_t>(stripes(query)) * (3 + kCodes);
    }

    static void score(const Query& query, const Subject& subject, uint8_t* scratch, int32_t* score,
                      const Control& control) {
        const int32_t n_stripes = stripes(query);
        const uint32_t report_columns = kReportVectors / static_cast<uint32_t>(n_stripes) + 1;
        V* h_old = reinterpret_cast<V*>(scratch);
        V* h_new = h_old + n_stripes;
        V* e = h_new + n_stripes;
        V* profile = e + n_stripes;
        const V zero = Lane::zero();
        const V first = Lane::cost(query.open + query.extend);
        const V extend = Lane::cost(query.extend);
        for (int32_t s = 0; s < n_stripes; ++s) {
            h_old[s] = zero;
            h_new[s] = zero;
            e[s] = zero;
        }
        for (int code = 0; code < kCodes; ++code) {
            for (int32_t s = 0; s < n_stripes; ++s) {
                int8_t values[kLanes];
                for (int lane = 0; lane < kLanes; ++lane) {
                    const int64_t position = static_cast<int64_t>(lane) * n_stripes + s;
                    values[lane] = position < query.length
                                       ? query.table[static_cast<ptrdiff_t>(query.rows[position]) * kCodes + code]
                                       : static_cast<int8_t>(-128);
                }
                profile[static_cast<ptrdiff_t>(code) * n_stripes + s] = Lane::scores(values);
            }
        }
        V best = zero;
        uint32_t reported = 0;
        for (uint32_t column = 0; column < subject.length; ++column) {
            if (column - reported == report_columns) {
                if (__atomic_load_n(control.stop, __ATOMIC_RELAXED) != 0) {
                    return;
                }
                __atomic_fetch_add(control.cells, uint64_t{report_columns} * static_cast<uint64_t>(query.length), __ATOMIC_RELAXED);
                reported = column;
            }
            const V* scores = profile + static_cast<ptrdiff_t>(subject.residues[column] & (kCodes - 1)) * n_stripes;
            V f = zero;
            V diagonal = Lane::shift(h_old[n_stripes - 1]);
            for (int32_t s = 0; s < n_stripes; ++s) {
                const V u = Lane::max(Lane::add_score(diagonal, scores[s]), e[s]);
                best = Lane::max(best, u);
                h_new[s] = Lane::max(u, f);
                const V opened = Lane::subtract(u, first);
                e[s] = Lane::max(Lane::subtract(e[s], extend), opened);
                f = Lane::max(Lane::subtract(f, extend), opened);
                diagonal = h_old[s];
            }
            // F of the last stripe goes to the first stripe of the next lane, for as long as it exceeds what the cells
            // there would hand on themselves.
            for (int lane = 0; lane < kLanes; ++lane) {
                f = Lane::shift(f);
                int32_t s = 0;
                for (; s < n_stripes; ++s) {
                    // Where F does not exceed what this cell hands down by a gap of its own, nothing below changes.
                    if (!Lane::any_greater(f, Lane::max(Lane::subtract(h_new[s], first), zero))) {
                        break;
                    }
                    h_new[s] = Lane::max(h_new[s], f);
                    f = Lane::subtract(f, extend);
                }
                if (s < n_stripes) {
                    break;
                }
            }
            V* swap = h_old;
            h_old = h_new;
            h_new = swap;
        }
        __atomic_fetch_add(control.cells,
                           static_cast<uint64_t>(subject.length - reported) * static_cast<uint64_t>(query.length),
                           __ATOMIC_RELAXED);
        int32_t values[kLanes];
        Lane::values(best, values);
        int32_t result = 0;
        for (int lane = 0; lane < kLanes; ++lane) {
            if (values[lane] == kSaturated) {
                result = kSaturated;
                break;
            }
            result = values[lane] > result ? values[lane] : result;
        }
        *score = result;
    }
};

}  // namespace
}  // namespace swsearch::score
