// The kernel for one long subject: Gotoh's recurrence for the local score, with the query striped over the lanes (M.
// Farrar, Bioinformatics 23:156, 2007); docs/design/cpu-engine.md describes how F crosses lanes.
//
// Inputs: a query and the residues of one subject. Output: the int32 score.
//
// Lane l of vector s has query position l * n_stripes + s. The first pass over the stripes ignores the F that passes
// from the last stripe of a lane to the first stripe of the next; a second pass applies it. E need not be computed
// again after it: a gap in E right after one in F does not score higher than the same two gaps in the other order.
// Numbers and exactness are those of the kernel for many subjects.

#pragma once

#include "score/lanes.hpp"

namespace swsearch::score {
namespace {

template <class Lane>
struct OneSubject {
    using V = typename Lane::V;
    static constexpr int kLanes = Lane::kLanes;
    static constexpr uint32_t kReportVectors = 1 << 20;  // vectors of cells between two reads of the control
    static constexpr uint32_t kCheckColumns = 64;  // columns between two tests whether the score has left the range
    static constexpr int32_t kScoreStep = kLanes;  // bytes of the scores of one vector

    static int32_t stripes(const Query& query) { return (query.length + kLanes - 1) / kLanes; }

    static size_t scratch_bytes(const Query& query) {
        // The memory stores H of two columns, E, and the scores of each subject letter. The scores are bytes in all
        // types, because wider ones would exceed the caches.
        return static_cast<size_t>(stripes(query)) * (3 * sizeof(V) + kCodes * kScoreStep);
    }

    static void compute_profile(const Query& query, int32_t n_stripes, int8_t* profile) {
        for (int code = 0; code < kCodes; ++code) {
            for (int32_t s = 0; s < n_stripes; ++s) {
                for (int lane = 0; lane < kLanes; ++lane) {
                    const int64_t position = static_cast<int64_t>(lane) * n_stripes + s;
                    *profile++ = position < query.length
                                     ? query.table[static_cast<ptrdiff_t>(query.rows[position]) * kCodes + code]
                                     : static_cast<int8_t>(-128);
                }
            }
        }
    }

    // F below a cell that results from a gap that opens at the cell.
    static V opened_below(V h, V first) { return Lane::max(Lane::subtract(h, first), Lane::zero()); }

    // F that enters each lane at its first stripe, given the F that enters it from the lane directly above.
    static V entering(V next, const LargeCost<Lane>& lane_cost) {
        if (lane_cost.out_of_range()) {
            return next;
        }
        V entered = next;
        V passed_on = Lane::max(next, Lane::zero());
        for (int lane = 1; lane < kLanes; ++lane) {
            passed_on = Lane::shift(Lane::max(lane_cost.subtracted_from(passed_on), Lane::zero()));
            if (!Lane::any_greater(passed_on, entered)) {
                break;
            }
            entered = Lane::max(entered, passed_on);
        }
        return entered;
    }

    static void score(const Query& query, const Subject& subject, uint8_t* scratch, int32_t* score,
                      const Control& control) {
        const int32_t n_stripes = stripes(query);
        const uint32_t report_columns = kReportVectors / static_cast<uint32_t>(n_stripes) + 1;
        V* h_old = reinterpret_cast<V*>(scratch);
        V* h_new = h_old + n_stripes;
        V* e = h_new + n_stripes;
        int8_t* profile = reinterpret_cast<int8_t*>(e + n_stripes);
        const V zero = Lane::zero();
        const V first = Lane::cost(query.open + query.extend);
        const V extend = Lane::cost(query.extend);
        const LargeCost<Lane> lane_cost(int64_t{n_stripes} * query.extend);
        for (int32_t s = 0; s < n_stripes; ++s) {
            h_old[s] = zero;
            h_new[s] = zero;
            e[s] = zero;
        }
        compute_profile(query, n_stripes, profile);
        V best = zero;
        uint32_t reported = 0;
        for (uint32_t column = 0; column < subject.length; ++column) {
            if (column - reported == report_columns) {
                if (__atomic_load_n(control.stop, __ATOMIC_RELAXED) != 0) {
                    return;
                }
                __atomic_fetch_add(control.cells, uint64_t{report_columns} * static_cast<uint64_t>(query.length),
                                   __ATOMIC_RELAXED);
                reported = column;
            }
            if (column % kCheckColumns == 0 && Lane::saturated(best)) {
                break;
            }
            const int32_t code = subject.residues[column] & (kCodes - 1);
            const int8_t* scores = profile + static_cast<ptrdiff_t>(code) * n_stripes * kScoreStep;
            V f = zero;
            V diagonal = Lane::shift(h_old[n_stripes - 1]);
            for (int32_t s = 0; s < n_stripes; ++s) {
                const V paired = Lane::load_bytes(scores + static_cast<ptrdiff_t>(s) * kScoreStep);
                const V u = Lane::max(Lane::add_score(diagonal, paired), e[s]);
                best = Lane::max(best, u);
                h_new[s] = Lane::max(u, f);
                const V opened = Lane::subtract(u, first);
                e[s] = Lane::max(Lane::subtract(e[s], extend), opened);
                f = Lane::max(Lane::subtract(f, extend), opened);
                diagonal = h_old[s];
            }
            // If F does not exceed the F below of a gap that opens at the cell, no cell further down changes.
            f = Lane::shift(f);
            if (Lane::any_greater(f, opened_below(h_new[0], first))) {
                f = entering(f, lane_cost);
                for (int32_t s = 0; s < n_stripes && Lane::any_greater(f, opened_below(h_new[s], first)); ++s) {
                    h_new[s] = Lane::max(h_new[s], f);
                    f = Lane::subtract(f, extend);
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
