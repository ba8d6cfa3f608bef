// The matrix by diamonds from a FIFO, and the best end.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "pair/pair.hpp"
#include "pair/strip.hpp"

namespace swsearch::pair {
namespace {

constexpr std::size_t most_steps = 1024;
constexpr std::size_t least_steps = 128;
constexpr std::int64_t most_score = std::int64_t{1} << 30;
constexpr std::int64_t narrow_reach = 32'600;

// Largest distance between two scores of neighbouring nodes (docs/design/diamond.md).
std::int64_t step_of(const Pair& pair) { return std::int64_t{std::max(pair.max_score, 0)} + pair.first; }

std::size_t narrow_steps(const Pair& pair, const Width& width) {
    const std::int64_t slack = std::int64_t{pair.first} + pair.costs.gap_extend + std::abs(std::int64_t{pair.min_score});
    const std::int64_t nodes = (narrow_reach - slack) / std::max<std::int64_t>(step_of(pair), 1);
    const std::int64_t steps = nodes - static_cast<std::int64_t>(width.strip() + width.behind()) - 4;
    return static_cast<std::size_t>(std::clamp<std::int64_t>(steps, 0, most_steps));
}

template <class Lane>
class Sweep {
public:
    Sweep(const Pair& pair, const Cut& cut, std::size_t first, std::size_t last, std::size_t columns, Row& row,
          Keeping& kept, Best* best, Watch& watch)
        : pair_(pair),
          cut_(cut),
          first_(first),
          columns_(columns),
          row_(row),
          kept_(kept),
          best_(best),
          watch_(watch),
          n_steps_(columns + cut.width.behind()),
          n_tiles_(cut.tiles(columns)),
          states_(last - first),
          done_(last - first, 0),
          left_((last - first) * n_tiles_) {
        for (Kept& keep : kept_.rows) {
            keep.row.h.resize(columns);
            keep.row.f.resize(columns);
        }
        if (best_ != nullptr) known_ = best_->score;
    }

    void run(int n_threads) {
        const std::size_t wanted = std::min({static_cast<std::size_t>(std::max(n_threads, 1)), states_.size(), n_tiles_});
        ready_.push_back({0, 0});
        std::vector<std::thread> threads;
        const auto join = [&] {
            for (std::thread& thread : threads) thread.join();
        };
        try {
            for (std::size_t i = 1; i < wanted; ++i) threads.emplace_back([this] { work(); });
        } catch (const std::system_error&) {
            // fewer threads do the same work
        } catch (...) {
            fail(std::current_exception());
        }
        work();
        join();
        if (failure_) std::rethrow_exception(failure_);
    }

private:
    struct Tile {
        std::size_t strip;  // counted from the first one of the sweep
        std::size_t tile;
    };

    void fail(std::exception_ptr failure) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!failure_) failure_ = failure;
        changed_.notify_all();
    }

    void work() {
        try {
            StripRunner<Lane> runner(pair_, cut_.width);
            std::unique_lock<std::mutex> lock(mutex_);
            for (;;) {
                changed_.wait(lock, [this] { return !ready_.empty() || left_ == 0 || stopped_ || failure_; });
                if (left_ == 0 || stopped_ || failure_) return;
                const Tile tile = ready_.front();
                ready_.pop_front();
                lock.unlock();
                Best found;
                found.score = std::numeric_limits<std::int32_t>::min();
                compute(runner, tile, found);
                watch_.done(cut_.steps * cut_.width.strip());
                lock.lock();
                if (sizeof(Lane) == 1 && found.score >= byte_limit) {
                    best_->score = byte_limit;
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
        } catch (...) {
            fail(std::current_exception());
        }
    }

    // A tile needs the one to its left, and from the strip above the tile over it and the next one, whose lowest row lies
    // over its last columns.
    bool is_ready(std::size_t strip) const {
        if (done_[strip] >= n_tiles_) return false;
        return strip == 0 || done_[strip - 1] >= std::min(done_[strip] + 2, n_tiles_);
    }

    void finished(const Tile& tile) {
        --left_;
        // The strip below waits for exactly one of the tiles above; a tile that was ready before is in the FIFO or done.
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
        const Part part{0, columns_, tile.tile * cut_.steps, std::min(n_steps_, (tile.tile + 1) * cut_.steps)};
        if (tile.tile == 0) runner.begin_at_border(state, strip);
        if (!kept_.states.empty()) runner.save(state, kept_.states.at(strip, tile.tile));
        const std::size_t strip_rows = cut_.width.strip();
        const bool last_rows = (strip + 1) * strip_rows >= pair_.rows;
        std::int32_t* h = row_.h.data();
        std::int32_t* f = row_.f.data();
        if (best_ != nullptr && pair_.ends.local) {
            runner.run_local(state, strip, part, h, f, known_.load(std::memory_order_relaxed), found);
        } else if (best_ != nullptr && pair_.ends.subject_free && last_rows) {
            runner.run_tracked(state, strip, part, h, f, h, f, pair_.rows - 1, pair_.rows, found);
        } else {
            runner.run(state, strip, part, h, f, h, f);
        }
        const auto keep = std::lower_bound(kept_.rows.begin(), kept_.rows.end(), strip,
                                           [](const Kept& kept, std::size_t wanted) { return kept.strip < wanted; });
        if (keep != kept_.rows.end() && keep->strip == strip) {
            const std::size_t behind = cut_.width.behind();
            const std::size_t from = std::max(part.begin, behind) - behind;
            const std::size_t to = std::max(part.end, behind) - behind;
            std::copy(row_.h.begin() + std::ptrdiff_t(from), row_.h.begin() + std::ptrdiff_t(to),
                      keep->row.h.begin() + std::ptrdiff_t(from));
            std::copy(row_.f.begin() + std::ptrdiff_t(from), row_.f.begin() + std::ptrdiff_t(to),
                      keep->row.f.begin() + std::ptrdiff_t(from));
        }
        if (tile.tile + 1 == n_tiles_) {
            if (best_ != nullptr && !pair_.ends.local) last_column(runner, state, strip, found);
            state = StripState<Lane>{};
        }
    }

    // Ends in the last column: all rows where the query's end gap is free, the corner in any case.
    void last_column(const StripRunner<Lane>& runner, const StripState<Lane>& state, std::size_t strip, Best& found) const {
        const std::size_t strip_rows = cut_.width.strip();
        std::vector<std::int32_t> h(strip_rows);
        std::vector<std::int32_t> next_e(strip_rows);
        runner.column(state, h.data(), next_e.data());
        for (std::size_t row = 0; row < strip_rows && strip * strip_rows + row < pair_.rows; ++row) {
            Best end;
            end.score = h[row];
            end.column = columns_;
            end.row = strip * strip_rows + row + 1;
            if ((pair_.ends.query_free || end.row == pair_.rows) && found.loses_to(end)) found = end;
        }
    }

    const Pair& pair_;
    const Cut& cut_;
    const std::size_t first_;
    const std::size_t columns_;
    Row& row_;
    Keeping& kept_;
    Best* const best_;
    Watch& watch_;
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
    std::exception_ptr failure_;
};

}  // namespace

Pair::Pair(const std::uint16_t* query_in, std::size_t rows_in, const std::uint16_t* subject_in, std::size_t columns_in,
           const Costs& costs_in, const Ends& ends_in)
    : query(query_in),
      rows(rows_in),
      subject(subject_in),
      columns(columns_in),
      costs(costs_in),
      ends(ends_in),
      first(costs_in.gap_open + costs_in.gap_extend) {
    if (costs.table == nullptr) {
        max_score = std::max(costs.match, costs.mismatch);
        min_score = std::min(costs.match, costs.mismatch);
        const std::size_t half = half_columns() + 2 * margin;
        const auto fits = [](std::uint16_t letter) { return letter < most_byte_letters; };
        if (ends.local && std::all_of(query, query + rows, fits) && std::all_of(subject, subject + columns, fits)) {
            bytes_.assign(2 * half, byte_subject_fill);
        }
        narrow_.assign(2 * half, static_cast<std::int16_t>(subject_fill));
        wide_.assign(2 * half, static_cast<std::int32_t>(subject_fill));
        for (std::size_t j = 0; j < columns; ++j) {
            const std::size_t at = (j & 1) * half + margin + half_columns() - 1 - j / 2;
            if (!bytes_.empty()) bytes_[at] = static_cast<std::int8_t>(subject[j]);
            narrow_[at] = static_cast<std::int16_t>(subject[j]);
            wide_[at] = subject[j];
        }
    } else {
        constexpr std::int8_t worst = -128;
        const auto [low, high] = std::minmax_element(costs.table, costs.table + costs.table_rows * costs.table_columns);
        max_score = *high;
        min_score = std::min<std::int32_t>(*low, worst);
        line_bytes_ = columns + 2 * margin;
        line_of_.assign(costs.table_rows, 0);
        std::size_t n_lines = 1;
        for (std::size_t i = 0; i < rows; ++i) {
            if (line_of_[query[i]] == 0) line_of_[query[i]] = n_lines++;
        }
        lines_.assign(n_lines * line_bytes_, worst);
        for (std::size_t letter = 0; letter < costs.table_rows; ++letter) {
            if (line_of_[letter] == 0) continue;
            std::int8_t* const out = lines_.data() + line_of_[letter] * line_bytes_ + margin;
            const std::int8_t* const scores = costs.table + letter * costs.table_columns;
            for (std::size_t j = 0; j < columns; ++j) out[j] = scores[subject[j]];
        }
    }
    if (static_cast<std::int64_t>(rows + columns + 2) * step_of(*this) + costs.gap_open > most_score) {
        throw std::length_error("the sequences are so long that their score may leave 30 bits; split them");
    }
}

template <>
const std::int8_t* Pair::letters<std::int8_t>(std::size_t odd) const {
    return bytes_.data() + odd * (half_columns() + 2 * margin) + margin + half_columns() - 1;
}

template <>
const std::int16_t* Pair::letters<std::int16_t>(std::size_t odd) const {
    return narrow_.data() + odd * (half_columns() + 2 * margin) + margin + half_columns() - 1;
}

template <>
const std::int32_t* Pair::letters<std::int32_t>(std::size_t odd) const {
    return wide_.data() + odd * (half_columns() + 2 * margin) + margin + half_columns() - 1;
}

Cut::Cut(const Pair& pair, const Kernels& kernels)
    : width(narrow_steps(pair, kernels.narrow) >= least_steps ? kernels.narrow : kernels.wide),
      lane_bytes(&width == &kernels.narrow ? 2 : 4),
      steps(lane_bytes == 2 ? narrow_steps(pair, width) : most_steps) {}

bool Cut::bytes_fit(const Pair& pair, const Kernels& kernels) {
    const Costs& costs = pair.costs;
    const bool costs_fit = costs.table != nullptr || (pair.max_score < 128 && pair.min_score >= -128);
    return pair.ends.local && costs_fit && pair.first < 128 && pair.letters_fit_bytes() &&
           pair.rows > kernels.narrow.strip();  // of a shorter query, strips of bytes would be padding
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

void sweep(const Pair& pair, const Cut& cut, std::size_t first, std::size_t last, std::size_t columns, Row& row,
           Keeping& kept, Best* best, int n_threads, Watch& watch) {
    if (cut.lane_bytes == 1) {
        Sweep<std::int8_t>(pair, cut, first, last, columns, row, kept, best, watch).run(n_threads);
    } else if (cut.lane_bytes == 2) {
        Sweep<std::int16_t>(pair, cut, first, last, columns, row, kept, best, watch).run(n_threads);
    } else {
        Sweep<std::int32_t>(pair, cut, first, last, columns, row, kept, best, watch).run(n_threads);
    }
}

}  // namespace swsearch::pair
