// Intra-task kernel: the best local score of all strips of a query against each subject of a list. It scores subjects
// again in a wider type, and subjects so long that a single group of lanes would delay the end of a complete launch.
// The recurrence is that of strip.cuh.
//
// Threads and cells. A warp computes a strip. Either each warp has a subject of its own and computes its strips one
// after another, or a team of warps shares a subject: warp w computes strips w, w + team_size, ..., each as close
// behind the strip above as the boundary columns arrive (strip_sync.cuh), so a subject takes little longer than one of
// its strips. Blocks are persistent and take the entries of the list by means of a counter.
//
// Memory. The packed profile consists of consecutive strips in the layout of tile.cuh; rows past the query's end and
// column 0 score -128. If a team has a warp for each strip, all strips are staged in shared memory once, for all teams
// of the block; otherwise each warp stages its current strip. The boundary between the strips of a subject is in global
// memory: for each team, `boundary_stride` columns, at least as many as the longest listed subject has, rounded up to
// complete rounds. The strips are a tile depth behind one another and share it: each column is read before it is
// overwritten, and is overwritten before the strip below reads it. `counters` has an entry for each warp of each block:
// the columns that it has written. The output is an int32 score per listed subject, stored by subject index.
//
// In addition to the scores, an observer may record data of each strip: for subjects of known score, the end positions
// (end_positions.cuh).
//
// Scores are exact up to 2,047 (FastPair), or 32,767 or 2^31 - 1 less the largest profile score (ShortPair, Wide). A
// larger result indicates that it may be inexact (arithmetic.cuh), and the host scores the subject again in the next
// wider type. Subjects are shorter than 2^31.

#pragma once

#include "search/end_positions.cuh"
#include "search/strip.cuh"
#include "search/strip_sync.cuh"

namespace swsearch {

struct SubjectList {
    const u32* residues;  // packed residues (subject.cuh), 16-byte aligned
    const u64* starts;    // byte of each subject's first residue, a multiple of 16
    const u32* lengths;   // residues of each subject
    const u32* listed;    // indices in starts and lengths of the subjects to score
    const u32* n_listed;  // length of the list, in device memory because the device may have counted it
    u32 least, most;      // with fewer or more listed subjects the kernel does nothing: another launch scores them
};

struct IntraTaskParameters {
    u64 profile;  // texture over the packed profile (tile.cuh)
    int n_strips;
    SubjectList subjects;
    GapCosts gap;
    u32* boundary;        // a buffer of the kernel, as the counters are
    u32 boundary_stride;  // columns of a boundary
    u64* counters;
    int team_size;      // warps that share a subject and compute its strips in turn; with 1, each warp has a subject
    int* scores;        // indexed by subject
    u32* work_counter;  // 0 before the launch
};

// Observer data of a kernel that records only scores.
struct ScoresAlone {};

// The observer of a strip of a subject, chosen by the type of its data.
template <class Shape>
SWS_DEVICE NoObserver observe_strip(const ScoresAlone&, u32, int, int) {
    return NoObserver();
}

template <class Shape>
SWS_DEVICE EndObserver<Shape> observe_strip(const WantedEnds& wanted, u32 subject, int strip, int lane) {
    return EndObserver<Shape>(wanted, subject, strip, lane);
}

constexpr int kMostTeams = 8;  // largest number of teams of several warps in a block

// Data that the warps of a block share. It follows the staged strips, in the padding due to which the read for a byte
// that is not a residue code stays inside the block's shared memory.
struct ListBlock {
    int scores[kMostTeams];  // best score of each team's subject
    u32 item;                // index in the list of the first team's subject
};

// shared: shared memory for the staged strips and a ListBlock. kEdges: kNone if the query has one strip, else kOwn.
// parameters: by value, as those of inter_task.
template <class Arithmetic, class Shape, Edges kEdges, class ObserverData>
SWS_DEVICE void intra_task(uint4* shared, const IntraTaskParameters parameters, const GapCosts& gap,
                           const ObserverData observer_data) {
    static_assert(Shape::kGroup == kWarpSize, "a warp has a strip");
    static_assert(sizeof(ListBlock) <= 64, "kernels.py reserves this space");
    const SubjectList& subjects = parameters.subjects;
    const int n_strips = parameters.n_strips;
    const int team_size = parameters.team_size;
    const u32 boundary_stride = parameters.boundary_stride;
    const u32 n_listed = *subjects.n_listed;
    if (n_listed < subjects.least || n_listed > subjects.most) {
        return;
    }
    const int n_warps = static_cast<int>(blockDim.x / kWarpSize);
    const int warp = static_cast<int>(threadIdx.x / kWarpSize);
    const int lane = static_cast<int>(threadIdx.x % kWarpSize);
    const bool shares_subject = team_size > 1;
    const int team = warp / team_size;
    const int index_in_team = warp % team_size;
    const u32 n_teams = static_cast<u32>(n_warps / team_size);
    // If a team has a warp for each strip, the strips stay in shared memory, and all teams use them.
    const bool staged_once = team_size == n_strips;
    const int n_staged = staged_once ? team_size : n_warps;
    ListBlock* const block = reinterpret_cast<ListBlock*>(shared + n_staged * Shape::kStripUnits);
    uint4* const strip = shared + (staged_once ? index_in_team : warp) * Shape::kStripUnits;
    if (staged_once) {
        stage_strip(shared, parameters.profile, 0, n_strips * Shape::kStripUnits, static_cast<int>(threadIdx.x),
                    static_cast<int>(blockDim.x));
        __syncthreads();
    }

    u64* const team_counters = parameters.counters + blockIdx.x * static_cast<u32>(n_warps) + team * team_size;
    const u64* const counter_above =
        shares_subject ? team_counters + (index_in_team + team_size - 1) % team_size : nullptr;
    u64* const own_counter = shares_subject ? team_counters + index_in_team : nullptr;
    u32* boundary = nullptr;
    if (n_strips > 1) {
        boundary = parameters.boundary + static_cast<u64>(blockIdx.x * n_teams + static_cast<u32>(team)) *
                                             boundary_stride * Shape::kBoundaryWords;
    }

    for (;;) {
        // The teams of a block take their subjects at the same time, because the barriers below make them wait for one
        // another. Neighbouring entries of a list have similar lengths.
        u32 item = 0;
        if (shares_subject) {
            if (threadIdx.x == 0) {
                block->item = atomicAdd(parameters.work_counter, n_teams);
            }
            if (lane == 0) {
                show_in_block(own_counter, 0);
                if (index_in_team == 0) {
                    block->scores[team] = 0;
                }
            }
            __syncthreads();
            item = block->item;
        } else {
            if (lane == 0) {
                item = atomicAdd(parameters.work_counter, 1u);
            }
            item = __shfl_sync(kWholeWarp, item, 0);
        }
        if (__all_sync(kWholeWarp, item >= n_listed)) {
            return;
        }
        item += shares_subject ? static_cast<u32>(team) : 0;
        const bool has_subject = item < n_listed;
        int score = 0;
        for (int number = has_subject ? index_in_team : n_strips; number < n_strips; number += team_size) {
            const u32 subject = subjects.listed[item];
            if (!staged_once) {
                __syncwarp();  // every lane has finished the previous strip
                stage_strip(strip, parameters.profile, number * Shape::kStripUnits, Shape::kStripUnits, lane,
                            kWarpSize);
                __syncwarp();
            }
            StripSync sync(counter_above, own_counter, number);
            const auto best = align_strip<Arithmetic, Shape, kEdges>(
                strip, subjects.residues + subjects.starts[subject] / 4,
                SubjectColumns<Shape>(static_cast<int>(subjects.lengths[subject])), gap,
                BoundaryLocation{boundary, boundary, 0}, number > 0, number + 1 < n_strips, sync,
                observe_strip<Shape>(observer_data, subject, number, lane));
            if (lane == kWarpSize - 1) {
                sync.finish();
            }
            const int found = single_score<Arithmetic>(best);
            score = found > score ? found : score;
        }
        if (shares_subject) {
            if (lane == 0) {
                atomicMax(&block->scores[team], score);
            }
            __syncthreads();
            score = block->scores[team];
        }
        if (has_subject && lane == 0 && index_in_team == 0) {
            parameters.scores[subjects.listed[item]] = score;
        }
        if (shares_subject) {
            __syncthreads();  // every warp has read what the next subjects reset
        }
    }
}

}  // namespace swsearch
