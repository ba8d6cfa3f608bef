// The function sweep (declared in pair.hpp): computes strips of the alignment matrix of one pair on several threads, in
// the tiles of docs/design/diamond.md, which threads take from a queue. The constructors of Pair and Tiling are here as
// well.
//
// Called by find_best and find_path (path.cpp). In: the pair, its tiling, a range of strips, and the row of H and F
// above them. Out: `row` becomes the lowest row; on request the best score with its end (Best), and the saved rows and
// strip states from which a path is traced (Saved).

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <stdexcept>

#include "common/instruction_sets.hpp"
#include "pair/pair.hpp"
#include "pair/strip.hpp"

namespace swsearch::pair {

SWSEARCH_DEFINE_KERNELS_OF

namespace {

constexpr std::size_t kMaxSteps = 1024;
constexpr std::size_t kMinSteps = 128;
constexpr std::int64_t kMaxScore = std::int64_t{1} << 30;
constexpr std::int64_t kNarrowReach = 32'600;

// The largest difference between the scores of two neighbouring nodes (docs/design/diamond.md).
std::int64_t step_of(const Pair& pair) { return std::int64_t{std::max(pair.max_score, 0)} + pair.first; }

std::size_t narrow_steps(const Pair& pair, const Width& width) {
    const std::int64_t slack = std::int64_t{pair.first} + pair.gap_extend + std::abs(std::int64_t{pair.min_score});
    const std::int64_t nodes = (kNarrowReach - slack) / std::max<std::int64_t>(step_of(pair), 1);
    const std::int64_t steps = nodes - static_cast<std::int64_t>(width.strip() + width.lag()) - 4;
    return static_cast<std::size_t>(std::clamp<std::int64_t>(steps, 0, kMaxSteps));
}

template <class Lane>
class Sweep {
   public:
    Sweep(const Pair& pair, const Tiling& tiling, std::size_t first, std::size_t last, std::size_t columns, Row& row,
          Saved& saved, Best* best, const Threads& threads)
        : pair_(pair),
          tiling_(tiling),
          first_(first),
          columns_(columns),
          row_(row),
          saved_(saved),
          best_(best),
          threads_(threads),
          n_steps_(columns + tiling.width.lag()),
          n_tiles_(tiling.tiles(columns)),
          states_(last - first),
          done_(last - first, 0),
          left_((last - first) * n_tiles_) {
        for (SavedRow& saved_row : saved_.rows) {
            saved_row.row.h.resize(columns);
            saved_row.row.f.resize(columns);
        }
        if (best_ != nullptr) known_ = best_->score;
    }

    void run() {
        const std::size_t n_workers =
            std::min({static_cast<std::size_t>(std::max(threads_.n, 1)), states_.size(), n_tiles_});
        ready_.push_back({0, 0});
        // A worker takes tiles until none is left, so any number of workers may run at the same time.
        parallel_for(n_workers, threads_, [this](std::size_t, std::size_t) {
            try {
                work();
            } catch (...) {
                const std::lock_guard<std::mutex> lock(mutex_);
                stopped_ = true;
                changed_.notify_all();
                throw;
            }
        });
    }

   private:
    struct Tile {
        std::size_t strip;  // counted from the first strip of the sweep
        std::size_t tile;
    };

    void work() {
        StripRunner<Lane> runner(pair_, tiling_.width);
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return !ready_.empty() || left_ == 0 || stopped_; });
            if (left_ == 0 || stopped_) return;
            const Tile tile = ready_.front();
            ready_.pop_front();
            lock.unlock();
            Best found{std::numeric_limits<std::int32_t>::min(), 0, 0};
            compute(runner, tile, found);
            threads_.observer.done(tiling_.steps * tiling_.width.strip());
            lock.lock();
            if (sizeof(Lane) == 1 && found.score >= kByteLimit) {
                best_->score = kByteLimit;
                stopped_ = true;
                changed_.notify_all();
                return;
            }
            if (best_ != nullptr && best_->loses_to(found)) {
                *best_ = found;
                known_ = found.score;
            }
            finished(tile);
        }
    }

    // A tile needs the tile to its left and two tiles of the strip above: the one above it and the next one, whose
    // lowest row is above its last columns.
    bool is_ready(std::size_t strip) const {
        if (done_[strip] >= n_tiles_) return false;
        return strip == 0 || done_[strip - 1] >= std::min(done_[strip] + 2, n_tiles_);
    }

    void finished(const Tile& tile) {
        --left_;
        // The strip below waits for exactly one tile of this strip; a tile that was ready before is queued or complete.
        const bool below_was_ready = tile.strip + 1 < done_.size() && is_ready(tile.strip + 1);
        ++done_[tile.strip];
        std::size_t more = 0;
        if (is_ready(tile.strip)) {
            ready_.push_back({tile.strip, done_[tile.strip]});
            ++more;
        }
        if (tile.strip + 1 < done_.size() && !below_was_ready && is_ready(tile.strip + 1)) {
            ready_.push_back({tile.strip + 1, done_[tile.strip + 1]});
            ++more;
        }
        if (left_ == 0) {
            changed_.notify_all();
        } else if (more > 1) {
            changed_.notify_one();
        }
    }

    void compute(StripRunner<Lane>& runner, const Tile& tile, Best& found) {
        const std::size_t strip = first_ + tile.strip;
        StripState<Lane>& state = states_[tile.strip];
        const Part part{0, columns_, tile.tile * tiling_.steps, std::min(n_steps_, (tile.tile + 1) * tiling_.steps)};
        if (tile.tile == 0) runner.begin_at_border(state, strip);
        if (!saved_.states.empty()) runner.save(state, saved_.states.at(strip, tile.tile));
        const std::size_t strip_rows = tiling_.width.strip();
        const bool last_rows = (strip + 1) * strip_rows >= pair_.rows;
        std::int32_t* h = row_.h.data();
        std::int32_t* f = row_.f.data();
        if (best_ != nullptr && pair_.boundary.local) {
            runner.run_local(state, strip, part, h, f, known_.load(std::memory_order_relaxed), found);
        } else if (best_ != nullptr && pair_.boundary.free(kSubjectEnd) && last_rows) {
            runner.run_tracked(state, strip, part, h, f, pair_.rows - 1, pair_.rows, found);
        } else {
            runner.run(state, strip, part, h, f);
        }
        const auto saved = std::lower_bound(saved_.rows.begin(), saved_.rows.end(), strip,
                                            [](const SavedRow& row, std::size_t wanted) { return row.strip < wanted; });
        if (saved != saved_.rows.end() && saved->strip == strip) {
            const std::size_t lag = tiling_.width.lag();
            const std::size_t from = std::max(part.begin, lag) - lag;
            const std::size_t to = std::max(part.end, lag) - lag;
            std::copy(row_.h.begin() + std::ptrdiff_t(from), row_.h.begin() + std::ptrdiff_t(to),
                      saved->row.h.begin() + std::ptrdiff_t(from));
            std::copy(row_.f.begin() + std::ptrdiff_t(from), row_.f.begin() + std::ptrdiff_t(to),
                      saved->row.f.begin() + std::ptrdiff_t(from));
        }
        if (tile.tile + 1 == n_tiles_) {
            if (best_ != nullptr && !pair_.boundary.local) last_column(runner, state, strip, found);
            state = StripState<Lane>{};
        }
    }

    // Ends in the last column: the corner and, if the query's end gap is free, every row.
    void last_column(const StripRunner<Lane>& runner, const StripState<Lane>& state, std::size_t strip,
                     Best& found) const {
        const std::size_t strip_rows = tiling_.width.strip();
        std::vector<std::int32_t> h(strip_rows);
        std::vector<std::int32_t> next_e(strip_rows);
        runner.column(state, h.data(), next_e.data());
        for (std::size_t row = 0; row < strip_rows && strip * strip_rows + row < pair_.rows; ++row) {
            const Best end{h[row], columns_, strip * strip_rows + row + 1};
            if (pair_.boundary.free(kQueryEnd) || end.row == pair_.rows) found.take(end);
        }
    }

    const Pair& pair_;
    const Tiling& tiling_;
    const std::size_t first_;
    const std::size_t columns_;
    Row& row_;
    Saved& saved_;
    Best* const best_;
    const Threads& threads_;
    const std::size_t n_steps_;
    const std::size_t n_tiles_;
    std::vector<StripState<Lane>> states_;
    std::vector<std::size_t> done_;
    std::size_t left_;
    bool stopped_ = false;
    std::deque<Tile> ready_;
    std::atomic<std::int32_t> known_{0};
    std::mutex mutex_;
    std::condition_variable changed_;
};

}  // namespace

template <class Lane>
void Pair::lay_out_letters(Lane fill) {
    std::vector<Lane>& laid_out = std::get<std::vector<Lane>>(letters_);
    const std::size_t half = half_letters(), first_column = kMargin + half_columns() - 1, n = columns;
    laid_out.assign(2 * half, fill);
    for (std::size_t j = 0; j < n; ++j) laid_out[(j & 1) * half + first_column - j / 2] = static_cast<Lane>(subject[j]);
}

Pair::Pair(const PairProblem& problem) : PairProblem(problem), first(problem.gap_open + problem.gap_extend) {
    if (table == nullptr) {
        max_score = std::max(match, mismatch);
        min_score = std::min(match, mismatch);
        const auto fits = [](std::uint16_t letter) { return letter < kMaxByteLetters; };
        if (boundary.local && std::all_of(query, query + rows, fits) && std::all_of(subject, subject + columns, fits)) {
            lay_out_letters<std::int8_t>(kByteSubjectFill);
        }
        lay_out_letters<std::int16_t>(static_cast<std::int16_t>(kSubjectFill));
        lay_out_letters<std::int32_t>(kSubjectFill);
    } else {
        constexpr std::int8_t kWorst = -128;
        const auto [low, high] = std::minmax_element(table, table + table_rows * table_columns);
        max_score = *high;
        min_score = std::min<std::int32_t>(*low, kWorst);
        score_row_bytes_ = columns + 2 * kMargin;
        score_row_.assign(table_rows, 0);
        std::size_t n_rows = 1;
        for (std::size_t i = 0; i < rows; ++i) {
            if (score_row_[query[i]] == 0) score_row_[query[i]] = n_rows++;
        }
        scores_.assign(n_rows * score_row_bytes_, kWorst);
        for (std::size_t letter = 0; letter < table_rows; ++letter) {
            if (score_row_[letter] == 0) continue;
            std::int8_t* const out = scores_.data() + score_row_[letter] * score_row_bytes_ + kMargin;
            const std::int8_t* const table_row = table + letter * table_columns;
            for (std::size_t j = 0; j < columns; ++j) out[j] = table_row[subject[j]];
        }
    }
    if (static_cast<std::int64_t>(rows + columns + 2) * step_of(*this) + gap_open > kMaxScore) {
        throw std::length_error("the sequences are so long that their score may leave 30 bits; split them");
    }
}

Tiling::Tiling(const Pair& pair, const Kernels& kernels)
    : width(narrow_steps(pair, kernels.narrow) >= kMinSteps ? kernels.narrow : kernels.wide),
      lane_bytes(&width == &kernels.narrow ? 2 : 4),
      steps(lane_bytes == 2 ? narrow_steps(pair, width) : kMaxSteps) {}

bool Tiling::bytes_fit(const Pair& pair, const Kernels& kernels) {
    const bool costs_fit = pair.table != nullptr || (pair.max_score < 128 && pair.min_score >= -128);
    return pair.boundary.local && costs_fit && pair.first < 128 && pair.letters_fit_bytes() &&
           pair.rows > kernels.narrow.strip();  // strips of bytes would be mostly padding for a shorter query
}

Row top_row(const Pair& pair) {
    Row row;
    row.h.resize(pair.columns);
    row.f.resize(pair.columns);
    for (std::size_t j = 0; j < pair.columns; ++j) {
        row.h[j] = pair.top_border(j + 1);
        row.f[j] = row.h[j] - pair.first;
    }
    return row;
}

void sweep(const Pair& pair, const Tiling& tiling, std::size_t first, std::size_t last, std::size_t columns, Row& row,
           Saved& saved, Best* best, const Threads& threads) {
    if (tiling.lane_bytes == 1) {
        Sweep<std::int8_t>(pair, tiling, first, last, columns, row, saved, best, threads).run();
    } else if (tiling.lane_bytes == 2) {
        Sweep<std::int16_t>(pair, tiling, first, last, columns, row, saved, best, threads).run();
    } else {
        Sweep<std::int32_t>(pair, tiling, first, last, columns, row, saved, best, threads).run();
    }
}

}  // namespace swsearch::pair
