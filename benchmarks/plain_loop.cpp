// The yardstick of the CPU engine: Gotoh's recurrence as it is written, over batches of subjects, with no search around it.
//
// Gaps open from H, and every cell looks for the best. Four columns go down the query in one pass, two vectors side by side
// where there are 32 registers, scores of 8 bits; subjects that reach 255 are left at 255, nothing is scored again, no
// score is known to be out of reach, and one thread does it all. What a search makes of the same processor is told as a
// ratio to this, so that figures of different machines can be compared. benchmarks/plain_loop.py builds and calls it.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "score/columns.hpp"
#include "score/lanes.hpp"

using namespace swsearch;
using namespace swsearch::score;

namespace {

using Lane = ScoreLanes<int8_t>;
using V = Vectors::V;
constexpr int kVectors = Vectors::kRegisters >= 32 ? 2 : 1;
constexpr int kLanes = Lane::kLanes * kVectors;
using BatchColumns = Columns<kLanes>;

struct Cell {
    V h[kVectors];
    V e[kVectors];
};

struct Loop {
    const int32_t* rows;
    int32_t length;
    V first;
    V extend;
    std::vector<Cell> cells;
    V profile[kProfileRows][kColumnsPerPass][kVectors];
    V best[kVectors];

    void pass() {
        V h[kColumnsPerPass][kVectors];
        V f[kColumnsPerPass][kVectors];
        V corner[kVectors];
        V peak[kVectors];
        for (int v = 0; v < kVectors; ++v) {
            peak[v] = best[v];
            corner[v] = Lane::zero();
            for (int c = 0; c < kColumnsPerPass; ++c) {
                h[c][v] = Lane::zero();
                f[c][v] = Lane::zero();
            }
        }
        for (int32_t i = 0; i < length; ++i) {
            const auto& scores = profile[rows[i]];
            V diagonal[kVectors];
            V e[kVectors];
#pragma GCC unroll 2
            for (int v = 0; v < kVectors; ++v) {
                diagonal[v] = corner[v];
                corner[v] = cells[static_cast<size_t>(i)].h[v];
                e[v] = cells[static_cast<size_t>(i)].e[v];
            }
#pragma GCC unroll 4
            for (int c = 0; c < kColumnsPerPass; ++c) {
#pragma GCC unroll 2
                for (int v = 0; v < kVectors; ++v) {
                    const V paired = Lane::max(Lane::add_score(diagonal[v], scores[c][v]), f[c][v]);
                    const V now = Lane::max(paired, e[v]);
                    const V opened = Lane::subtract(now, first);
                    peak[v] = Lane::max(peak[v], now);
                    f[c][v] = Lane::max(Lane::subtract(f[c][v], extend), opened);
                    e[v] = Lane::max(Lane::subtract(e[v], extend), opened);
                    diagonal[v] = h[c][v];
                    h[c][v] = now;
                }
            }
#pragma GCC unroll 2
            for (int v = 0; v < kVectors; ++v) {
                cells[static_cast<size_t>(i)].h[v] = h[kColumnsPerPass - 1][v];
                cells[static_cast<size_t>(i)].e[v] = e[v];
            }
        }
        for (int v = 0; v < kVectors; ++v) {
            best[v] = peak[v];
        }
    }

    void batch(const Subject* subjects, int n, const int8_t* table, int32_t n_rows, int32_t* scores) {
        alignas(64) uint8_t columns[BatchColumns::kStride * kBlockColumns];
        const BatchColumns batch_columns(subjects, n);
        for (int v = 0; v < kVectors; ++v) {
            best[v] = Lane::zero();
            for (Cell& cell : cells) {
                cell.h[v] = Lane::zero();
                cell.e[v] = Lane::zero();
            }
        }
        for (uint32_t column = 0; column < batch_columns.longest(); column += kColumnsPerPass) {
            if (column % kBlockColumns == 0) {
                batch_columns.transpose(column, columns);
            }
            for (int c = 0; c < kColumnsPerPass; ++c) {
                for (int v = 0; v < kVectors; ++v) {
                    const uint32_t offset = (column % kBlockColumns + static_cast<uint32_t>(c)) * BatchColumns::kStride;
                    const auto codes = Vectors::codes_of(Vectors::load(columns + offset + v * Lane::kLanes));
                    for (int32_t row = 0; row < n_rows; ++row) {
                        profile[row][c][v] = Lane::look_up(table + row * kCodes, codes);
                    }
                }
            }
            pass();
        }
        for (int v = 0; v < kVectors; ++v) {
            int32_t values[Lane::kLanes];
            Lane::values(best[v], values);
            for (int lane = 0; lane < Lane::kLanes && v * Lane::kLanes + lane < n; ++lane) {
                const int32_t value = values[lane];
                scores[v * Lane::kLanes + lane] = value == kSaturated ? Lane::kLargest : value;
            }
        }
    }
};

}  // namespace

// Scores of n subjects, sorted by length, up to 255. The table has at most 32 rows; first = open + extend is at most 127.
extern "C" void plain_loop(const int32_t* rows, int32_t length, const int8_t* table, int32_t n_rows, int32_t first,
                           int32_t extend, const uint8_t* residues, const uint64_t* starts, const uint32_t* lengths,
                           uint32_t n, int32_t* scores) {
    static Loop loop;
    loop.rows = rows;
    loop.length = length;
    loop.first = Lane::cost(first);
    loop.extend = Lane::cost(extend);
    loop.cells.resize(static_cast<size_t>(length));
    for (uint32_t stop = n; stop > 0;) {
        const uint32_t begin = stop > kLanes ? stop - kLanes : 0;
        Subject subjects[kLanes];
        for (uint32_t i = begin; i < stop; ++i) {
            subjects[i - begin] = {residues + starts[i], lengths[i]};
        }
        loop.batch(subjects, static_cast<int>(stop - begin), table, n_rows, scores + begin);
        stop = begin;
    }
}
