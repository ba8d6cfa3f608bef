// The subjects of a list, all strips of the query: for subjects that are scored again in a wider type, and for those so
// long that a group of lanes alone would keep a whole launch waiting.
//
// A warp holds a strip. Either each warp has a subject of its own and takes the strips one after another, or a team of warps
// has one together: warp w takes strips w, w + team, ..., each as close behind the strip above as its columns come
// (strip_sync.cuh), so that a subject takes little longer than one strip of it.
//
// Blocks are persistent and take the list's entries from a counter. Strips are staged in the block's shared memory: once,
// for all teams, where a team has a warp for each; else each warp stages the strip that it is at. The strips of a subject
// hand on their boundary in global memory, in stretches `boundary_stride` columns long. `counts` tells of each warp of each
// block how far it has come.
//
// Beside the scores something may be kept of each strip: of windows of long subjects, which are listed subjects as well, what
// checkpoints.cuh compares; where the scores are known, their ends (ends.cuh).

#pragma once

#include "kernels/end_positions.cuh"
#include "kernels/checkpoints.cuh"
#include "kernels/strip.cuh"
#include "swsearch/strip_sync.cuh"

namespace swsearch {

struct SubjectList {
    const u32* residues;
    const u64* starts;
    const u32* lengths;
    const u32* places;    // subjects to score, by their place in starts and lengths
    const u32* n_places;  // how many, counted on the device
};

// Nothing is kept of the strips but their scores.
struct ScoresAlone {};

// The observer of a strip of a subject.
template <class Shape>
SWS_DEVICE NoObserver observe_strip(const ScoresAlone&, u32, int, int, int) {
    return NoObserver();
}

template <class Shape>
SWS_DEVICE AtCheckpoints<Shape> observe_strip(const Checkpoints& checkpoints, u32 place, int strip, int n_strips, int lane) {
    return AtCheckpoints<Shape>(checkpoints, place, strip, n_strips, lane);
}

template <class Shape>
SWS_DEVICE AtEnds<Shape> observe_strip(const WantedEnds& wanted, u32 place, int strip, int, int lane) {
    return AtEnds<Shape>(wanted, place, strip, lane);
}

// The columns of a subject that its strips go through.
template <class Shape, class Kept>
SWS_DEVICE WholeSubject<Shape> course_of(const Kept&, u32, int length, int) {
    return WholeSubject<Shape>(length);
}

template <class Shape>
SWS_DEVICE SlantedPart<Shape> course_of(const Checkpoints& checkpoints, u32 place, int length, int strip) {
    const int n_steps = static_cast<int>(checkpoints.steps[place]);
    return SlantedPart<Shape>(length, static_cast<int>(checkpoints.before[place]), n_steps, n_steps + kFurtherColumns, strip);
}

// Where strips leave their boundary. Those of whole subjects are a tile's depth behind one another and all leave it in one
// stretch of memory: a column is read before it is written, and by the strip below only after that. Those of parts are close
// behind and take two stretches in turns.
template <class Kept>
constexpr int kStretches = 1;
template <>
constexpr int kStretches<Checkpoints> = 2;

constexpr int kMostTeams = 8;  // of a block, of several warps each

// What the warps of a block share, behind their strips: in the room that a byte which is no residue would read.
struct ListBlock {
    int scores[kMostTeams];  // of each team's subject
    u32 item;
};

// team: warps that have a subject together, the strips of which they take in turns; of one warp, it goes from strip to strip
// by itself. kEdges: kNone where the query has one strip, else kOwn.
template <class Arithmetic, class Shape, int kOpen, int kExtend, Edges kEdges, bool kTexture, class Kept>
SWS_DEVICE void intra_task(uint4* shared, const ProfileSource& profile, int n_strips, const SubjectList& subjects,
                           u32* boundary, u32 boundary_stride, u64* counts, int team, int* scores,
                           u32* work_counter, const Kept& kept) {
    static_assert(Shape::kGroup == kWarpSize, "a warp has a strip");
    static_assert(sizeof(ListBlock) <= 64, "kernels.py leaves as much room");
    const u32 n_places = *subjects.n_places;
    const int n_warps = static_cast<int>(blockDim.x / kWarpSize);
    const int warp = static_cast<int>(threadIdx.x / kWarpSize);
    const int lane = static_cast<int>(threadIdx.x % kWarpSize);
    const bool together = team > 1;
    const int number_of_team = warp / team;
    const int place_in_team = warp % team;
    const u32 n_teams = static_cast<u32>(n_warps / team);
    // A team that has a warp for each strip has them all in shared memory for good, and other teams use them as well.
    const bool staged_once = team == n_strips;
    ListBlock* const block = reinterpret_cast<ListBlock*>(shared + (staged_once ? team : n_warps) * Shape::kStripUnits);
    uint4* const strip = shared + (staged_once ? place_in_team : warp) * Shape::kStripUnits;
    if (staged_once) {
        stage_strip<kTexture>(shared, profile, 0, n_strips * Shape::kStripUnits, static_cast<int>(threadIdx.x),
                              static_cast<int>(blockDim.x));
        __syncthreads();
    }

    u64* const of_team = counts + blockIdx.x * static_cast<u32>(n_warps) + number_of_team * team;
    const u64* const count_above = together ? of_team + (place_in_team + team - 1) % team : nullptr;
    u64* const count_own = together ? of_team + place_in_team : nullptr;
    u32* edge = nullptr;
    if (n_strips > 1) {
        edge = boundary + static_cast<u64>(blockIdx.x * n_teams + static_cast<u32>(number_of_team)) * boundary_stride *
                              (kStretches<Kept> * Shape::kBoundaryWords);
    }

    for (;;) {
        // Teams take as many subjects as they are at once, since all wait for all; lists have like lengths side by side.
        u32 item = 0;
        if (together) {
            if (threadIdx.x == 0) {
                block->item = atomicAdd(work_counter, n_teams);
            }
            if (lane == 0) {
                show_in_block(count_own, 0);
                if (place_in_team == 0) {
                    block->scores[number_of_team] = 0;
                }
            }
            __syncthreads();
            item = block->item;
        } else {
            if (lane == 0) {
                item = atomicAdd(work_counter, 1u);
            }
            item = __shfl_sync(kWholeWarp, item, 0);
        }
        if (__all_sync(kWholeWarp, item >= n_places)) {
            return;
        }
        item += together ? static_cast<u32>(number_of_team) : 0;
        const bool has_subject = item < n_places;
        int score = 0;
        for (int number = has_subject ? place_in_team : n_strips; number < n_strips; number += team) {
            const u32 place = subjects.places[item];
            if (!staged_once) {
                __syncwarp();  // every lane is past the strip before
                stage_strip<kTexture>(strip, profile, number * Shape::kStripUnits, Shape::kStripUnits, lane, kWarpSize);
                __syncwarp();
            }
            StripSync order(count_above, count_own, number);
            u32* const other = words_from(edge, (kStretches<Kept> - 1) * static_cast<long long>(boundary_stride) *
                                                    Shape::kBoundaryWords);
            const EdgePlace edges{number % 2 == 0 ? other : edge, number % 2 == 0 ? edge : other, 0};
            const int length = static_cast<int>(subjects.lengths[place]);
            const auto best = align_strip<Arithmetic, Shape, kOpen, kExtend, false, kEdges>(
                strip, subjects.residues + subjects.starts[place] / 4, course_of<Shape>(kept, place, length, number), edges,
                number > 0, number + 1 < n_strips, order, observe_strip<Shape>(kept, place, number, n_strips, lane));
            if (lane == kWarpSize - 1) {
                order.finish();
            }
            const int found = single_score<Arithmetic>(best);
            score = found > score ? found : score;
        }
        if (together) {
            if (lane == 0) {
                atomicMax(&block->scores[number_of_team], score);
            }
            __syncthreads();
            score = block->scores[number_of_team];
        }
        if (has_subject && lane == 0 && place_in_team == 0) {
            scores[subjects.places[item]] = score;
        }
        if (together) {
            __syncthreads();  // every warp is done with what the next subjects reset
        }
    }
}

}  // namespace swsearch
