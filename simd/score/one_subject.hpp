// The kernel for one long subject: the query lies in the lanes, striped (Farrar 2007).
//
// Lane l of vector s holds query position l * n_stripes + s, so that the vectors of one column depend on one another only
// through F, which runs down the stripes, and at the last stripe of a lane enters the next lane at the first. The first
// walk down the stripes leaves that out. What then enters each lane, through any number of lanes above, is found at once,
// since a lane as a whole lowers F by n_stripes * extend; and a second walk carries it on for as long as it can still
// raise a cell. So a column is walked twice at most, also where a long alignment's score keeps F alive over all rows. A
// gap that opens in E right after one in F is worth no more than the same two gaps in the other order, so E need not hear
// of the second walk.
//
// The numbers are those of the kernel for many subjects.

#pragma once

#include "score/lanes.hpp"

namespace swsearch::score {
namespace {

template <class Lane>
struct OneSubject {
    using V = typename Lane::V;
    static constexpr int kLanes = Lane::kLanes;
    static constexpr uint32_t kReportVectors = 1 << 20;  // vectors of cells between two looks at the control
    static constexpr uint32_t kCheckColumns = 64;        // columns between two looks at whether the score left the range
    static constexpr int32_t kScoreStep = kLanes;        // bytes of the scores of one vector

    static int32_t stripes(const Query& query) { return (query.length + kLanes - 1) / kLanes; }

    static size_t scratch_bytes(const Query& query) {
        // H of two columns, E, and the scores of every subject letter, which stay bytes: wider they leave the caches.
        return static_cast<size_t>(stripes(query)) * (3 * sizeof(V) + kCodes * kScoreStep);
    }

    static void lay_out_profile(const Query& query, int32_t n_stripes, int8_t* profile) {
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

    // What a cell hands down by a gap that opens there.
    static V handed_down(V h, V first) { return Lane::max(Lane::subtract(h, first), Lane::zero()); }

    // What of F enters each lane at its first stripe, from what enters it out of the lane above alone.
    static V entering(V next, const LargeCost<Lane>& lane_cost) {
        if (lane_cost.out_of_range()) {
            return next;
        }
        V sum = next;
        V further = Lane::max(next, Lane::zero());
        for (int lane = 1; lane < kLanes; ++lane) {
            further = Lane::shift(Lane::max(lane_cost.subtracted_from(further), Lane::zero()));
            if (!Lane::any_greater(further, sum)) {
                break;
            }
            sum = Lane::max(sum, further);
        }
        return sum;
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
        lay_out_profile(query, n_stripes, profile);
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
            if (column % kCheckColumns == 0 && Lane::saturated(best)) {
                break;
            }
            const int8_t* scores = profile + static_cast<ptrdiff_t>(subject.residues[column] & (kCodes - 1)) * n_stripes * kScoreStep;
            V f = zero;
            V diagonal = Lane::shift(h_old[n_stripes - 1]);
            for (int32_t s = 0; s < n_stripes; ++s) {
                const V u = Lane::max(Lane::add_score(diagonal, Lane::scores(scores + static_cast<ptrdiff_t>(s) * kScoreStep)), e[s]);
                best = Lane::max(best, u);
                h_new[s] = Lane::max(u, f);
                const V opened = Lane::subtract(u, first);
                e[s] = Lane::max(Lane::subtract(e[s], extend), opened);
                f = Lane::max(Lane::subtract(f, extend), opened);
                diagonal = h_old[s];
            }
            // Where F does not exceed what a cell hands down by a gap of its own, nothing below changes.
            f = Lane::shift(f);
            if (Lane::any_greater(f, handed_down(h_new[0], first))) {
                f = entering(f, lane_cost);
                for (int32_t s = 0; s < n_stripes && Lane::any_greater(f, handed_down(h_new[s], first)); ++s) {
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
