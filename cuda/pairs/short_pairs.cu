// Aligns thousands of short pairs, one warp per pair. Inputs: 16-bit letters of all pairs (ShortPairs) and the scoring.
// Outputs: the score and the end positions (ShortResult) and, on request, the runs of the path, which is traced back
// through a decision that is stored for every cell. The recurrence, the end that is chosen among several, and the path
// are those of docs/design/diamond.md.
//
// Threads and cells. A lane stores kRows consecutive query rows in registers and is one column behind the lane above
// it. The values that it needs from that lane were computed one step before and arrive by a shuffle of H and one of F.
// A query of more than 32 * kRows rows takes several strips; H and F of a strip's last row are stored in global memory.
// Every cell stores its decision: which of the three terms gave H (or that a local path stops there) and, with affine
// gaps, whether the gaps that leave the cell open there. A lane's decisions of one step are one or two words; those of
// a warp are adjacent.
//
// Path. The same warp traces the path back from its end. The lanes load the decisions of 32 columns of the current rows
// at a time, so one memory access serves all steps until the path leaves them. Runs are written beginning with the last
// run of the path, then copied, in order from its start, to an array that all pairs share.
//
// Limits. Sequences have 1 to 8,192 letters; scores and costs are at most 16,383 in magnitude. No score then exceeds
// 2^30, and all scores are exact in 32 bits. The host refuses other pairs.
//
// The design follows "Smith-Waterman speed-up in CUDA" (2023), which assigned a block to each pair, computed its
// anti-diagonals in shared memory with a barrier after each, and traced back with one thread per pair. This kernel
// needs neither barriers nor shared memory, except for a table of scores.

#include "common/platform.cuh"
#include "pairs/free_ends.cuh"

namespace swsearch {

constexpr int kNever = -(1 << 30);
constexpr int kTableColumns = 32;

// The pairs of a launch. Their letters are stored in arrays that all pairs share.
struct ShortPairs {
    const unsigned short* query;    // letters of all queries; below 32 if a table scores them
    const unsigned short* subject;  // letters of all subjects; below 32 if a table scores them
    const uint4* jobs;              // for each pair: first letter and length of the query, then of the subject
    const u64* decisions_start;     // for each pair: index of its first word in `decisions`
    const u32* runs_start;          // for each pair: index of its first entry in `walked`, one entry per letter
    u32 n_pairs;
};

struct ShortScoring {
    const signed char* table;  // [query letter][32]: scores of subject letters; null if letters are compared
    int match;
    int mismatch;
    int gap_open;
    int gap_extend;
};

struct ShortResult {
    int score;
    int query_end, subject_end;
    int query_start, subject_start;
    int n_runs;
    u32 runs;  // index of the first run among the runs of all pairs
    u32 unused;
};

// Low two bits: the term that gave H. Bits 2 and 3: whether the gap to the right (E) and the gap below (F) open at
// this cell.
enum Decision : u32 { kStop = 0, kDiagonal = 1, kFromE = 2, kFromF = 3, kEOpened = 4, kFOpened = 8 };

// An end. Among equal scores the end with the larger `order` is better: the smaller column, then the smaller row.
struct ShortEnd {
    int score;
    u32 order;

    static SWS_DEVICE ShortEnd at(int score, int row, int column) {
        return {score, 0xFFFFFFFFu - ((static_cast<u32>(column) << 16) | static_cast<u32>(row))};
    }
    SWS_DEVICE int row() const { return static_cast<int>((0xFFFFFFFFu - order) & 0xFFFFu); }
    SWS_DEVICE int column() const { return static_cast<int>((0xFFFFFFFFu - order) >> 16); }
    SWS_DEVICE void offer(const ShortEnd& other) {
        const bool better = other.score > score || (other.score == score && other.order > order);
        score = better ? other.score : score;
        order = better ? other.order : order;
    }
};

// Sizes of decisions, which the host computes as well (swsearch/engine/cuda/pairs/short_pairs.py).
template <int kRows, bool kAffine>
struct DecisionWords {
    static constexpr int kBits = kAffine ? 4 : 2;
    static constexpr int kCells = 32 / kBits < kRows ? 32 / kBits : kRows;  // cells per word
    static constexpr int kWords = kRows / kCells;                           // words per lane and step
    static_assert(kRows % kCells == 0, "words are full");
};

template <int kRows, bool kAffine, bool kLocal, bool kTable, bool kPath>
class ShortPairAligner {
    using Words = DecisionWords<kRows, kAffine>;
    static constexpr int kStripRows = kRows * kWarpSize;
    static constexpr int kLastLane = kWarpSize - 1;

   public:
    // shared_table: the table in shared memory, if one is used. boundary: this warp's buffer for H and F of a strip's
    // last row, as many columns as the longest subject has.
    SWS_DEVICE ShortPairAligner(const ShortScoring& scoring, const FreeEnds& free_ends, const signed char* shared_table,
                                uint2* boundary)
        : scoring_(scoring),
          free_ends_(free_ends),
          table_(shared_table),
          boundary_(boundary),
          first_(scoring.gap_open + scoring.gap_extend),
          lane_(static_cast<int>(threadIdx.x % kWarpSize)) {}

    // decisions, walked: the pair's own parts of these arrays. all_runs, n_all_runs: the runs of all pairs and their
    // number.
    SWS_DEVICE void align(const unsigned short* query, int rows, const unsigned short* subject, int columns,
                          u32* decisions, u32* walked, ShortResult* result, u32* all_runs, u32* n_all_runs) {
        rows_ = rows;
        columns_ = columns;
        ShortEnd best = border_end();
        const int n_strips = (rows + kStripRows - 1) / kStripRows;
        const u64 strip_words = static_cast<u64>(columns + kLastLane) * kWarpSize * Words::kWords;
        for (int strip = 0; strip < n_strips; ++strip) {
            sweep(query, subject, strip, strip + 1 < n_strips, decisions + static_cast<u64>(strip) * strip_words, best);
            __syncwarp();  // makes the last lane's boundary visible to the first lane of the next strip
        }
#pragma unroll
        for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
            best.offer(
                {__shfl_xor_sync(kWholeWarp, best.score, distance), __shfl_xor_sync(kWholeWarp, best.order, distance)});
        }
        ShortResult found = {best.score, best.row(), best.column(), 0, 0, 0, 0, 0};
        if constexpr (kPath) {
            walk(decisions, strip_words, walked, found);
            u32 start = 0;
            if (lane_ == 0) {
                start = atomicAdd(n_all_runs, static_cast<u32>(found.n_runs));
            }
            found.runs = __shfl_sync(kWholeWarp, start, 0);
            __syncwarp();
            for (int run = lane_; run < found.n_runs; run += kWarpSize) {
                all_runs[found.runs + static_cast<u32>(run)] = walked[found.n_runs - 1 - run];
            }
        }
        if (lane_ == 0) {
            *result = found;
        }
        __syncwarp();
    }

   private:
    SWS_DEVICE int border(int k, bool free) const {
        return free || k == 0 ? 0 : -(scoring_.gap_open + k * scoring_.gap_extend);
    }
    SWS_DEVICE int left_border(int row) const { return border(row, kLocal || free_ends_.has(kQueryStart)); }
    SWS_DEVICE int top_border(int column) const { return border(column, kLocal || free_ends_.has(kSubjectStart)); }

    // The best end on the border of the matrix.
    SWS_DEVICE ShortEnd border_end() const {
        if constexpr (kLocal) {
            return ShortEnd::at(0, 0, 0);
        }
        ShortEnd best = {kNever, 0};
        if (free_ends_.has(kSubjectEnd)) {
            best.offer(ShortEnd::at(left_border(rows_), rows_, 0));
        }
        if (free_ends_.has(kQueryEnd)) {
            best.offer(ShortEnd::at(top_border(columns_), 0, columns_));
        }
        return best;
    }

    SWS_DEVICE int score(u32 query_letter, u32 subject_letter) const {
        if constexpr (kTable) {
            return table_[query_letter * kTableColumns + subject_letter];
        }
        return query_letter == subject_letter ? scoring_.match : scoring_.mismatch;
    }

    // Computes all cells of a strip, and offers its ends to `best`.
    SWS_DEVICE void sweep(const unsigned short* query, const unsigned short* subject, int strip, bool has_strip_below,
                          u32* decisions, ShortEnd& best) {
        const int top = strip * kStripRows + lane_ * kRows;  // rows above this lane's rows
        const int open_cost = first_;
        const int extend = scoring_.gap_extend;
        u32 letters[kRows];
        int h[kRows];
        int e[kRows];
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            letters[r] = top + r < rows_ ? query[top + r] : 0;
            h[r] = left_border(top + r + 1);
            e[r] = h[r] - open_cost;
        }
        int diagonal = left_border(top);
        int last_h = 0;
        int last_f = 0;
        ShortEnd lane_best = {kLocal ? 0 : kNever, 0};
        uint2 above = {0, 0};  // boundary of the strip above: this lane's column of the current 32
        u32 letter_ahead = lane_ == 0 ? subject[0] : 0;
        const int n_steps = columns_ + kLastLane;
        for (int step = 0; step < n_steps; ++step) {
            if (strip > 0 && step % kWarpSize == 0) {
                above = step + lane_ < columns_ ? boundary_[step + lane_] : uint2{0, 0};
            }
            int up_h = __shfl_up_sync(kWholeWarp, last_h, 1, kWarpSize);
            int f = __shfl_up_sync(kWholeWarp, last_f, 1, kWarpSize);
            if (strip > 0) {
                const int edge_h = static_cast<int>(__shfl_sync(kWholeWarp, above.x, step % kWarpSize));
                const int edge_f = static_cast<int>(__shfl_sync(kWholeWarp, above.y, step % kWarpSize));
                up_h = lane_ == 0 ? edge_h : up_h;
                f = lane_ == 0 ? edge_f : f;
            } else if (lane_ == 0) {
                up_h = top_border(step + 1);
                f = up_h - open_cost;
            }
            const int column = step - lane_;
            const u32 letter = letter_ahead;
            if (column + 1 >= 0 && column + 1 < columns_) {
                letter_ahead = subject[column + 1];
            }
            if (column < 0 || column >= columns_) {
                continue;
            }
            u32 words[Words::kWords] = {};
            int across = diagonal;
            diagonal = up_h;
            int highest = kNever;
#pragma unroll
            for (int r = 0; r < kRows; ++r) {
                const int matched = across + score(letters[r], letter);
                across = h[r];
                const int from_e = kAffine ? e[r] : h[r] - extend;
                const int now = kLocal ? __vimax3_s32_relu(matched, from_e, f) : __vimax3_s32(matched, from_e, f);
                u32 cell = now == matched ? kDiagonal : now == from_e ? kFromE : kFromF;
                if (kLocal && now == 0) {
                    cell = kStop;
                }
                h[r] = now;
                const int opened = now - open_cost;
                if constexpr (kAffine) {
                    const int longer_e = from_e - extend;
                    const int longer_f = f - extend;
                    e[r] = longer_e > opened ? longer_e : opened;
                    f = longer_f > opened ? longer_f : opened;
                    cell |= (e[r] == opened ? kEOpened : 0u) | (f == opened ? kFOpened : 0u);
                } else {
                    f = opened;
                }
                if constexpr (kPath) {
                    words[r / Words::kCells] |= cell << (r % Words::kCells * Words::kBits);
                }
                if constexpr (kLocal) {
                    // Rows past the query's end lie below all real rows and are not ends.
                    highest = top + r < rows_ && now > highest ? now : highest;
                }
            }
            last_h = h[kRows - 1];
            last_f = f;
            if constexpr (kPath) {
                u32* const out = decisions + static_cast<u64>(step * kWarpSize + lane_) * Words::kWords;
                if constexpr (Words::kWords == 2) {
                    *reinterpret_cast<uint2*>(out) = uint2{words[0], words[1]};
                } else {
                    out[0] = words[0];
                }
            }
            if (has_strip_below && lane_ == kLastLane) {
                boundary_[column] = uint2{static_cast<u32>(last_h), static_cast<u32>(last_f)};
            }
            if constexpr (kLocal) {
                if (highest > lane_best.score) {
                    offer_rows(h, top, column, highest, lane_best);
                }
            } else if (column + 1 == columns_ || free_ends_.has(kSubjectEnd)) {
                offer_ends(h, top, column, lane_best);
            }
        }
        best.offer(lane_best);
    }

    // Offers the first row of this lane that has the column's highest score.
    SWS_DEVICE static void offer_rows(const int (&h)[kRows], int top, int column, int highest, ShortEnd& best) {
#pragma unroll
        for (int r = kRows - 1; r >= 0; --r) {
            if (h[r] == highest) {
                best = ShortEnd::at(highest, top + r + 1, column + 1);
            }
        }
    }

    // Offers the ends that a global or semi-global problem allows in this column.
    SWS_DEVICE void offer_ends(const int (&h)[kRows], int top, int column, ShortEnd& best) const {
        const bool all_rows = free_ends_.has(kQueryEnd) && column + 1 == columns_;
#pragma unroll
        for (int r = 0; r < kRows; ++r) {
            const int row = top + r + 1;
            if (row == rows_ || (all_rows && row < rows_)) {
                best.offer(ShortEnd::at(h[r], row, column + 1));
            }
        }
    }

    // Traces the path back from its end to its start, and writes the runs, the last one first, to `walked`.
    SWS_DEVICE void walk(const u32* decisions, u64 strip_words, u32* walked, ShortResult& found) const {
        int row = found.query_end;
        int column = found.subject_end;
        u32 state = kDiagonal;  // H; kFromE and kFromF inside a gap
        u32 run_operation = 0;
        u32 run_length = 0;
        const auto append = [&](u32 operation, u32 length) {
            if (run_length > 0 && operation != run_operation) {
                if (lane_ == 0) {
                    walked[found.n_runs] = run_length << 2 | run_operation;
                }
                ++found.n_runs;
                run_length = 0;
            }
            run_operation = operation;
            run_length += length;
        };
        int loaded_group = -1;  // group of kRows rows whose decisions the lanes have loaded
        int loaded_column = 0;  // column that lane 0 has loaded; lane k has the one k columns before
        u32 loaded[Words::kWords] = {};
        bool stopped = false;
        while (row > 0 && column > 0 && !stopped) {
            const int i = row - 1;
            const int j = column - 1;
            const int group = i / kRows;
            if (group != loaded_group || loaded_column - j >= kWarpSize) {
                loaded_group = group;
                loaded_column = j;
                const int step = j - lane_ + group % kWarpSize;
                const u32* const words = decisions + static_cast<u64>(group / kWarpSize) * strip_words +
                                         static_cast<u64>(step * kWarpSize + group % kWarpSize) * Words::kWords;
#pragma unroll
                for (int w = 0; w < Words::kWords; ++w) {
                    loaded[w] = j - lane_ >= 0 ? words[w] : 0;
                }
            }
            const int r = i % kRows;
            u32 word = loaded[0];
            if (Words::kWords == 2 && r >= Words::kCells) {
                word = loaded[Words::kWords - 1];
            }
            word = __shfl_sync(kWholeWarp, word, loaded_column - j);
            const u32 cell = word >> (r % Words::kCells * Words::kBits);
            if (state == kDiagonal) {
                switch (cell & 3u) {
                    case kStop: stopped = true; break;
                    case kDiagonal:
                        append(0, 1);
                        --row;
                        --column;
                        break;
                    case kFromE:
                        state = kFromE;
                        append(2, 1);
                        --column;
                        break;
                    default:
                        state = kFromF;
                        append(1, 1);
                        --row;
                        break;
                }
            } else {
                // This is the cell before the gap's last letter: the gap opens here or continues.
                const u32 opened = state == kFromE ? kEOpened : kFOpened;
                if (!kAffine || (cell & opened) != 0) {
                    state = kDiagonal;
                } else if (state == kFromE) {
                    append(2, 1);
                    --column;
                } else {
                    append(1, 1);
                    --row;
                }
            }
        }
        if (!stopped && !kLocal) {
            // On the border the rest of the path is one gap, or it is empty if that end is free.
            if (row == 0 && column > 0 && !free_ends_.has(kSubjectStart)) {
                append(2, static_cast<u32>(column));
                column = 0;
            }
            if (column == 0 && row > 0 && !free_ends_.has(kQueryStart)) {
                append(1, static_cast<u32>(row));
                row = 0;
            }
        }
        append(3, 0);  // writes the current run
        found.query_start = row;
        found.subject_start = column;
    }

    const ShortScoring& scoring_;
    const FreeEnds free_ends_;
    const signed char* table_;
    uint2* boundary_;
    int first_;
    int lane_;
    int rows_ = 0;
    int columns_ = 0;
};

struct ShortPairsParameters {
    ShortPairs pairs;
    const u32* order;  // the pairs, the largest first
    ShortScoring scoring;
    FreeEnds free_ends;
    u32* decisions;
    u32* walked;
    uint2* boundary;  // boundary_stride columns for each warp of the grid
    u32 boundary_stride;
    ShortResult* results;  // indexed by pair
    u32* all_runs;
    u32* n_all_runs;  // 0 before the launch, and so is the counter
    u32* counter;
};

// Warps take pairs by means of a counter, in their order. shared_table: shared memory for a table, or unused.
template <int kRows, bool kAffine, bool kLocal, bool kTable, bool kPath>
SWS_DEVICE void align_short_pairs(signed char* shared_table, const ShortPairsParameters& parameters) {
    const ShortPairs& pairs = parameters.pairs;
    if constexpr (kTable) {
        for (u32 entry = threadIdx.x; entry < kTableColumns * kTableColumns; entry += blockDim.x) {
            shared_table[entry] = parameters.scoring.table[entry];
        }
        __syncthreads();
    }
    const u32 warp = (blockIdx.x * blockDim.x + threadIdx.x) / kWarpSize;
    ShortPairAligner<kRows, kAffine, kLocal, kTable, kPath> aligner(
        parameters.scoring, parameters.free_ends, shared_table,
        parameters.boundary + static_cast<u64>(warp) * parameters.boundary_stride);
    for (;;) {
        u32 turn = 0;
        if (threadIdx.x % kWarpSize == 0) {
            turn = atomicAdd(parameters.counter, 1u);
        }
        turn = __shfl_sync(kWholeWarp, turn, 0);
        if (turn >= pairs.n_pairs) {
            return;
        }
        const u32 pair = parameters.order[turn];
        const uint4 job = pairs.jobs[pair];
        aligner.align(pairs.query + job.x, static_cast<int>(job.y), pairs.subject + job.z, static_cast<int>(job.w),
                      kPath ? parameters.decisions + pairs.decisions_start[pair] : nullptr,
                      kPath ? parameters.walked + pairs.runs_start[pair] : nullptr, parameters.results + pair,
                      parameters.all_runs, parameters.n_all_runs);
    }
}

}  // namespace swsearch

// Compile-time constants of the entry: SWS_ROWS (query rows per lane: 8 or 16); SWS_AFFINE, SWS_LOCAL, SWS_TABLE and
// SWS_PATH (0 or 1); SWS_THREADS and SWS_BLOCKS (threads per block, minimum of blocks per multiprocessor). Shared
// memory: the table's 1,024 bytes if SWS_TABLE is 1, else none.
SWS_KERNEL(SWS_THREADS, SWS_BLOCKS)
short_pairs(SWS_PARAMETERS swsearch::ShortPairsParameters parameters) {
    using namespace swsearch;
    SWS_DYNAMIC_SHARED(signed char, shared_table);
    align_short_pairs<SWS_ROWS, SWS_AFFINE != 0, SWS_LOCAL != 0, SWS_TABLE != 0, SWS_PATH != 0>(shared_table,
                                                                                                parameters);
}
