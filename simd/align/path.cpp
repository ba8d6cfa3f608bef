// The band that holds all optimal paths to an end (reverse pass), and the path through it (banded traceback).

#include <algorithm>
#include <limits>

#include "align/forward_pass.hpp"

namespace swsearch::align {
namespace {

// Lies below every score and stays there under any gap cost.
constexpr std::int32_t never = std::numeric_limits<std::int32_t>::min() / 2;
constexpr std::uint64_t cells_between_checks = 1'000'000;

// Rows low … high (nodes, so 0 … query length) of one subject node column.
struct Interval {
    std::int32_t low;
    std::int32_t high;
    std::size_t width() const { return static_cast<std::size_t>(high - low + 1); }
};

// Node columns first … first + rows.size() - 1, in growing order.
struct Band {
    std::size_t first = 0;
    std::vector<Interval> rows;
    const Interval& at(std::size_t column) const { return rows[column - first]; }
};

std::int32_t step(std::int32_t open_value, std::int32_t extend_value) { return std::max(open_value, extend_value); }

// Counts cells and asks the watch now and then.
class Meter {
public:
    explicit Meter(Watch& watch) : watch_(watch) {}
    void add(std::size_t cells) {
        cells_ += cells;
        if (cells_ >= cells_between_checks) {
            watch_.done(0);
            cells_ = 0;
        }
    }

private:
    Watch& watch_;
    std::uint64_t cells_ = 0;
};

// Walks back from the end. h and e hold, for the node column in hand, the best value from a node to the end, free and
// with a gap in the subject as its first step; f the same for a gap in the query. What cannot lie on an optimal path is
// dropped: values of 0 or less, values that fall short of the score by more than any alignment up to that column makes,
// and what lies before a node from which the whole score is reached.
Band find_band(const Query& query, const std::uint8_t* subject, const End& end, const ColumnBest& groups,
               const UsedPairs& used, Watch& watch) {
    Meter meter(watch);
    const std::int32_t open = query.first - query.extend;
    std::vector<std::int32_t> h(end.query_end + 2, never);
    std::vector<std::int32_t> e(end.query_end + 2, never);
    std::vector<Interval> columns;
    std::int32_t low = static_cast<std::int32_t>(end.query_end);  // alive rows of the column after
    std::int32_t high = low;
    for (std::size_t column = end.subject_end;; --column) {
        const bool at_end = column == end.subject_end;
        const std::int8_t* scores = at_end ? nullptr : query.scores(subject[column]);
        const Rows barred = used.rows(column);
        const std::int32_t reach = column == 0 ? 0 : groups.best[(column - 1) >> groups.shift];
        const std::int32_t needed = std::max(1, end.score - reach);
        const std::int32_t needed_in_gap = std::max(1, end.score - reach - open);
        std::int32_t f = never;
        std::int32_t below_h = never;       // h of the row below in this column
        std::int32_t below_h_after = never;  // and in the column after
        std::int32_t alive_low = 0;
        std::int32_t alive_high = -1;
        const std::int32_t start = high;
        std::int32_t row = start;
        for (; row >= 0 && (row >= low - 1 || f > never || below_h > never); --row) {
            const std::size_t i = static_cast<std::size_t>(row);
            const std::int32_t h_after = h[i];
            f = below_h == never && f == never ? never : step(below_h - query.first, f - query.extend);
            std::int32_t e_now = step(h_after - query.first, e[i] - query.extend);
            std::int32_t h_now = never;
            if (at_end) {
                h_now = row == start ? 0 : never;
                e_now = never;
            } else if (below_h_after != never && !barred.holds(i)) {
                h_now = below_h_after + scores[i];
            }
            h_now = std::max(h_now, std::max(e_now, f));
            below_h_after = h_after;
            const bool is_end = at_end && row == start;
            const bool whole = h_now == end.score;
            if (!is_end && h_now < needed) h_now = never;
            if (e_now < needed_in_gap) e_now = never;
            if (f < needed_in_gap) f = never;
            if (h_now != never || e_now != never || f != never) {
                if (alive_high < 0) alive_high = row;
                alive_low = row;
            }
            if (whole) h_now = never;
            h[i] = h_now;
            e[i] = e_now;
            below_h = h_now;
        }
        const std::int32_t touched = row + 1;
        meter.add(static_cast<std::size_t>(start - touched + 1));
        if (alive_high < 0) break;
        columns.push_back({alive_low, alive_high});
        low = alive_low;
        high = alive_high;
        if (column == 0) break;
    }
    std::reverse(columns.begin(), columns.end());
    Band band;
    band.first = end.subject_end + 1 - columns.size();
    band.rows = std::move(columns);
    return band;
}

enum State : std::uint8_t { in_h, in_e, in_f };

// A cell's decisions: what made H, and whether E and F opened there rather than went on.
enum Direction : std::uint8_t { stop = 0, diagonal = 1, from_e = 2, from_f = 3, h_mask = 3, e_opened = 4, f_opened = 8 };

// H and E of one node column inside its interval.
struct Column {
    std::size_t number = 0;
    std::vector<std::int32_t> h;
    std::vector<std::int32_t> e;
};

// The banded forward pass with its decisions, and the walk back through them.
class Tracer {
public:
    Tracer(const Query& query, const std::uint8_t* subject, const End& end, const Band& band, const UsedPairs& used,
           std::size_t memory_bytes, Watch& watch)
        : query_(query),
          subject_(subject),
          band_(band),
          used_(used),
          memory_bytes_(memory_bytes),
          meter_(watch),
          h_(end.query_end + 1, never),
          e_(end.query_end + 1, never),
          f_(end.query_end + 1),
          across_(end.query_end + 1),
          without_f_(end.query_end + 1),
          row_(end.query_end),
          column_(end.subject_end) {}

    // Operations from the end to the start, as run lengths of 'M', 'D' and 'I'.
    void trace() {
        trace_columns(band_.first, column_, nullptr);
    }

    std::size_t row() const { return row_; }
    std::size_t column() const { return column_; }
    const std::vector<std::pair<char, std::size_t>>& runs() const { return runs_; }

private:
    // Puts H and E of a saved column in place; of no column where there is none.
    void restore(const Column* saved) {
        std::fill(h_.begin(), h_.end(), never);
        std::fill(e_.begin(), e_.end(), never);
        if (saved == nullptr) return;
        const std::size_t low = static_cast<std::size_t>(band_.at(saved->number).low);
        std::copy(saved->h.begin(), saved->h.end(), h_.begin() + static_cast<std::ptrdiff_t>(low));
        std::copy(saved->e.begin(), saved->e.end(), e_.begin() + static_cast<std::ptrdiff_t>(low));
    }

    Column save(std::size_t column) const {
        const Interval& rows = band_.at(column);
        return {column, {h_.begin() + rows.low, h_.begin() + rows.high + 1}, {e_.begin() + rows.low, e_.begin() + rows.high + 1}};
    }

    // One node column from the one before it. `directions` is that column's part, or null.
    void advance(std::size_t column, std::uint8_t* directions) {
        const Interval rows = band_.at(column);
        meter_.add(rows.width());
        if (column == band_.first) {  // no path enters the band from the left: its nodes are starts
            std::fill(h_.begin() + rows.low, h_.begin() + rows.high + 1, 0);
            if (directions != nullptr) std::fill(directions, directions + rows.width(), std::uint8_t{stop});
            return;
        }
        const Interval before = band_.at(column - 1);
        const std::size_t low = static_cast<std::size_t>(rows.low);
        const std::size_t n = rows.width();
        make_without_f(low, n, query_.scores(subject_[column - 1]), used_.rows(column - 1));
        // The chain down the rows, alone: F opens from H, and where H is F itself going on costs no more.
        std::int32_t f = never;
        for (std::size_t k = 0; k < n; ++k) {
            f_[k] = f;
            f = std::max(without_f_[k] - query_.first, f - query_.extend);
        }
        if (directions != nullptr) decide(low, n, directions);
        for (std::size_t k = 0; k < n; ++k) h_[low + k] = std::max(without_f_[k], f_[k]);
        for (std::int32_t gone = before.low; gone <= before.high; ++gone) {  // outside this column's interval
            if (gone >= rows.low && gone <= rows.high) {
                gone = rows.high;
                continue;
            }
            h_[static_cast<std::size_t>(gone)] = never;
            e_[static_cast<std::size_t>(gone)] = never;
        }
    }

    // E, and H as it would be without F, of rows low … low + n - 1; h_ still holds the column before. The loops over rows
    // have no branch and no step that waits for the one before, so that the compiler makes vectors of them.
    void make_without_f(std::size_t low, std::size_t n, const std::int8_t* scores, const Rows& barred) {
        const std::int32_t* const left = h_.data() + low;
        std::int32_t* const e = e_.data() + low;
        std::int32_t* const across = across_.data();
        std::int32_t* const without_f = without_f_.data();
        across[0] = low > 0 ? never_or_sum(left[-1], scores[low - 1]) : never;
        for (std::size_t k = 1; k < n; ++k) across[k] = never_or_sum(left[k - 1], scores[low + k - 1]);
        for (const std::uint32_t used : barred) {
            if (used + 1 >= low && used + 1 < low + n) across[used + 1 - low] = never;
        }
        for (std::size_t k = 0; k < n; ++k) {
            e[k] = std::max(std::max(left[k] - query_.first, e[k] - query_.extend), never);
            without_f[k] = std::max(std::max(0, across[k]), e[k]);
        }
    }

    static std::int32_t never_or_sum(std::int32_t before, std::int32_t score) {
        return before == never ? never : before + score;
    }

    // A byte for each row, from what make_without_f and the chain have left; h_ still holds the column before.
    void decide(std::size_t low, std::size_t n, std::uint8_t* directions) const {
        const std::int32_t* const left = h_.data() + low;
        const std::int32_t* const e = e_.data() + low;
        const std::int32_t* const f = f_.data();
        const std::int32_t* const across = across_.data();
        const std::int32_t* const without_f = without_f_.data();
        const std::int32_t first = query_.first;
        for (std::size_t k = 0; k < n; ++k) {
            const std::int32_t h = std::max(without_f[k], f[k]);
            int made = h == e[k] ? from_e : from_f;
            made = h == across[k] ? diagonal : made;
            made = h == 0 ? stop : made;
            made |= e[k] == left[k] - first ? e_opened : 0;
            directions[k] = static_cast<std::uint8_t>(made);
        }
        for (std::size_t k = 1; k < n; ++k) {
            const std::int32_t above = std::max(without_f[k - 1], f[k - 1]);
            directions[k] = static_cast<std::uint8_t>(directions[k] | (f[k] == above - first ? f_opened : 0));
        }
    }

    std::size_t cells(std::size_t from, std::size_t to) const {
        std::size_t sum = 0;
        for (std::size_t column = from; column <= to; ++column) sum += band_.at(column).width();
        return sum;
    }

    // Walks through columns from … to, whose state before `from` is `entry`; leaves when the path does.
    void trace_columns(std::size_t from, std::size_t to, const Column* entry) {
        const std::size_t total = cells(from, to);
        restore(entry);
        if (total <= memory_bytes_ || from == to) {
            std::vector<std::uint8_t> directions(total);
            std::vector<std::size_t> offsets(to - from + 1);
            std::size_t offset = 0;
            for (std::size_t column = from; column <= to; ++column) {
                offsets[column - from] = offset;
                advance(column, directions.data() + offset);
                offset += band_.at(column).width();
            }
            walk(from, directions, offsets);
            return;
        }
        // Parts of about equal size, few enough that their checkpoints take no more than the directions may.
        std::size_t widest = 1;
        for (std::size_t column = from; column <= to; ++column) widest = std::max(widest, band_.at(column).width());
        const std::size_t affordable = memory_bytes_ / (2 * sizeof(std::int32_t) * widest);
        const std::size_t wanted = total / std::max<std::size_t>(memory_bytes_, 1) + 1;
        const std::size_t parts = std::max<std::size_t>(2, std::min(affordable, wanted));
        std::vector<Column> checkpoints;
        std::vector<std::size_t> starts{from};
        std::size_t sum = 0;
        for (std::size_t column = from; column < to; ++column) {
            advance(column, nullptr);
            sum += band_.at(column).width();
            if (sum >= total / parts + 1 || column + 1 == to) {
                if (sum < total / parts + 1 && starts.size() > 1) continue;  // the last column alone needs no part
                checkpoints.push_back(save(column));
                starts.push_back(column + 1);
                sum = 0;
            }
        }
        std::size_t last = to;
        for (std::size_t part = starts.size(); part-- > 0 && !finished_;) {
            if (column_ >= starts[part]) trace_columns(starts[part], last, part == 0 ? entry : &checkpoints[part - 1]);
            last = starts[part] - 1;
            if (part > 0) checkpoints.pop_back();
        }
    }

    void walk(std::size_t from, const std::vector<std::uint8_t>& directions, const std::vector<std::size_t>& offsets) {
        while (column_ >= from) {
            const Interval& rows = band_.at(column_);
            const std::uint8_t cell =
                directions[offsets[column_ - from] + row_ - static_cast<std::size_t>(rows.low)];
            if (state_ == in_h) {
                switch (cell & h_mask) {
                    case stop: finished_ = true; return;
                    case diagonal: push('M'); --row_; --column_; break;
                    case from_e: state_ = in_e; break;
                    default: state_ = in_f; break;
                }
            } else if (state_ == in_e) {
                push('D');
                if (cell & e_opened) state_ = in_h;
                --column_;
            } else {
                push('I');
                if (cell & f_opened) state_ = in_h;
                --row_;
            }
        }
    }

    void push(char operation) {
        if (runs_.empty() || runs_.back().first != operation) runs_.emplace_back(operation, 0);
        ++runs_.back().second;
    }

    const Query& query_;
    const std::uint8_t* subject_;
    const Band& band_;
    const UsedPairs& used_;
    const std::size_t memory_bytes_;
    Meter meter_;
    std::vector<std::int32_t> h_;
    std::vector<std::int32_t> e_;
    // Of the rows of one column's interval: F, H through a pair, and H without F.
    std::vector<std::int32_t> f_;
    std::vector<std::int32_t> across_;
    std::vector<std::int32_t> without_f_;
    std::size_t row_;
    std::size_t column_;
    State state_ = in_h;
    bool finished_ = false;
    std::vector<std::pair<char, std::size_t>> runs_;
};

// Writes the CIGAR from the start on and counts its columns.
void describe(const Query& query, const std::uint8_t* subject, const std::vector<std::pair<char, std::size_t>>& runs,
              Path& path) {
    std::size_t row = path.query_start;
    std::size_t column = path.subject_start;
    const auto write = [&path](std::size_t length, char operation) {
        path.cigar += std::to_string(length);
        path.cigar += operation;
    };
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
        const std::size_t length = run->second;
        path.columns += length;
        if (run->first != 'M') {
            write(length, run->first);
            path.gap_openings += 1;
            path.gap_residues += length;
            (run->first == 'D' ? column : row) += length;
            continue;
        }
        std::size_t same_run = 0;
        char operation = '=';
        for (std::size_t k = 0; k < length; ++k, ++row, ++column) {
            const bool equal = query.identity[query.codes[row] & 31u] == query.identity[subject[column] & 31u];
            const char now = equal ? '=' : 'X';
            if (now != operation && same_run > 0) {
                write(same_run, operation);
                same_run = 0;
            }
            operation = now;
            ++same_run;
            path.identities += equal ? 1u : 0u;
            path.positives += query.scores(subject[column])[row] > 0 ? 1u : 0u;
        }
        write(same_run, operation);
    }
}

// The pairs of residues that a path aligns.
std::vector<std::pair<std::size_t, std::size_t>> pairs_of(const Path& path,
                                                          const std::vector<std::pair<char, std::size_t>>& runs) {
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    std::size_t row = path.query_start;
    std::size_t column = path.subject_start;
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
        for (std::size_t k = 0; k < run->second; ++k) {
            if (run->first == 'M') pairs.emplace_back(row, column);
            if (run->first != 'D') ++row;
            if (run->first != 'I') ++column;
        }
    }
    return pairs;
}

}  // namespace

std::vector<Path> find_paths(const Query& query, const std::uint8_t* subject, std::size_t length, std::size_t most,
                             std::int32_t floor, std::size_t memory_bytes, Watch& watch) {
    std::vector<Path> paths;
    UsedPairs used;
    ForwardPass forward(query, subject, length, most > 1, watch);
    while (paths.size() < most) {
        Path path;
        path.end = forward.end();
        if (path.end.score < std::max(floor, 1)) break;
        const Band band = find_band(query, subject, path.end, forward.groups(), used, watch);
        Tracer tracer(query, subject, path.end, band, used, memory_bytes, watch);
        tracer.trace();
        path.query_start = tracer.row();
        path.subject_start = tracer.column();
        describe(query, subject, tracer.runs(), path);
        if (paths.size() + 1 < most) {
            used.add(pairs_of(path, tracer.runs()));
            forward.bar(used, path.subject_start, path.end.subject_end - 1);
        }
        paths.push_back(std::move(path));
    }
    return paths;
}

std::vector<Path> find_path_to(const Query& query, const std::uint8_t* subject, const End& end, std::int32_t floor,
                               std::size_t memory_bytes, Watch& watch) {
    const std::uint64_t columns = std::min<std::uint64_t>(end.subject_end, query.most_columns(end));
    const std::size_t from = end.subject_end - static_cast<std::size_t>(columns);
    std::vector<Path> paths = find_paths(query, subject + from, columns, 1, floor, memory_bytes, watch);
    for (Path& path : paths) {
        path.subject_start += from;
        path.end.subject_end += from;
    }
    return paths;
}

}  // namespace swsearch::align
