// How a search is cut into work.
//
// Subjects go in batches of like length, one a lane. The longest of a batch leave it for the kernel that scores one
// subject at a time where that is the cheaper way: a titin among ordinary proteins, or the few subjects of a small
// database. A subject that is very long against what any alignment of the query can span goes in overlapping windows,
// one a lane. Work is ordered by cost, the most expensive first, and threads take it piece by piece.
//
// Everything starts in the narrowest lanes that hold the gap cost. What saturates is scored again in 16 bits, and what
// saturates there in 32. Where the caller gives a floor and there are many subjects, a round that only bounds the scores
// comes first, and what may reach the floor is scored again.

#include "score/search.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>

#include "score/crew.hpp"

namespace swsearch::score {

namespace {

// Cost of one vector of cells in the kernel for one subject, the kernel for many being 1, and its cost of a column.
constexpr double kOneVectorCost = 1.3;
constexpr double kOneColumnCost = 6.5;
// Windows overlap by what an alignment can span; the new part must be so many times that for windows to be worth it.
constexpr uint64_t kMinWindowSteps = 3;
constexpr uint64_t kMaxWindowStep = 1 << 16;

// Bounds pay where there are so many full batches, and until one subject in so many must be scored again. (Long subjects
// come first and score higher, so the share is of all subjects and not of those seen.)
constexpr size_t kMinBoundBatches = 16;
constexpr uint64_t kMinBoundShare = 32;

// Part of a long subject; its score stands for the alignments that lie inside it.
struct Window {
    uint32_t place;
    uint32_t first;
    uint32_t length;
    uint32_t step;  // residues before the next window begins
    int32_t score;
};

// A batch for the kernel for many, or something long for the kernel for one; items are places or windows of a query.
struct Work {
    uint32_t query;
    bool one;
    bool windows;
    size_t first;
    int count;
    double cost;
};

// Longest stretch of a subject that an optimal local alignment can cover. Its pairs score at most the sum of each
// row's best score, and what its gaps cost must stay below that; each residue more than the query has costs an extend.
uint64_t longest_span(const Query& query) {
    int64_t gain = 0;
    for (int32_t i = 0; i < query.length; ++i) {
        const int8_t* row = query.table + static_cast<ptrdiff_t>(query.rows[i]) * kCodes;
        gain += std::max<int64_t>(0, *std::max_element(row, row + kCodes));
    }
    if (gain <= query.open + query.extend) {
        return static_cast<uint64_t>(query.length);
    }
    if (query.extend == 0) {
        return std::numeric_limits<uint64_t>::max();
    }
    return static_cast<uint64_t>(query.length) + static_cast<uint64_t>((gain - query.open) / query.extend);
}

// A round over what is left to score: the bounds, then each width of lanes.
struct Round {
    Width width;
    bool bounds;
};
constexpr Round kRounds[] = {{kBits8, true}, {kBits8, false}, {kBits16, false}, {kBits32, false}};

// What one query still has to score.
struct Remaining {
    std::vector<uint32_t> places;  // shortest subject first
    std::vector<Window> windows;   // shortest first
    int first_round = 0;
    uint64_t reached = 0;  // items whose bound reached the floor
};

class Search {
public:
    Search(const std::vector<Query>& queries, const Subjects& subjects, int32_t* scores, const Kernels& kernels,
           int n_threads, const Poll& poll)
        : queries_(queries),
          subjects_(subjects),
          scores_(scores),
          kernels_(kernels),
          n_threads_(n_threads),
          poll_(poll),
          remaining_(queries.size()) {}

    std::vector<uint64_t> run() {
        std::fill(scores_, scores_ + queries_.size() * static_cast<size_t>(subjects_.n), 0);
        const std::vector<uint32_t> order = places_by_length();
        for (uint32_t q = 0; q < queries_.size(); ++q) {
            remaining_[q].first_round = first_round(queries_[q], order.size());
        }
        for (int round = 0; round < static_cast<int>(std::size(kRounds)); ++round) {
            round_ = round;
            width_ = kRounds[round].width;
            work_.clear();
            for (uint32_t q = 0; q < queries_.size(); ++q) {
                if (round == remaining_[q].first_round) {
                    remaining_[q].places = order;
                    cut_windows(q);
                }
                plan(q, false, remaining_[q].places.size(),
                     [&](size_t i) { return subjects_.lengths[remaining_[q].places[i]]; });
                plan(q, true, remaining_[q].windows.size(), [&](size_t i) { return remaining_[q].windows[i].length; });
            }
            std::stable_sort(work_.begin(), work_.end(), [](const Work& a, const Work& b) { return a.cost > b.cost; });
            run_crew(
                work_.size(), n_threads_, [&](size_t i, Scratch& scratch, const Control& control) {
                    do_work(work_[i], scratch, control);
                },
                &cells_, [&] { report(); });
            for (uint32_t q = 0; q < queries_.size(); ++q) {
                keep_unfinished(q);
            }
        }
        report();
        std::vector<uint64_t> n_wide(queries_.size(), 0);
        for (uint32_t q = 0; q < queries_.size(); ++q) {
            const int32_t* scores = scores_ + q * static_cast<size_t>(subjects_.n);
            const int32_t largest = kernels_.largest[start_width(queries_[q])];
            n_wide[q] = static_cast<uint64_t>(
                std::count_if(scores, scores + subjects_.n, [&](int32_t score) { return score >= largest; }));
        }
        return n_wide;
    }

private:
    std::vector<uint32_t> places_by_length() const {
        std::vector<uint32_t> order;
        order.reserve(subjects_.n);
        for (uint32_t place = 0; place < subjects_.n; ++place) {
            if (subjects_.lengths[place] > 0) {
                order.push_back(place);
            }
        }
        const auto shorter = [&](uint32_t a, uint32_t b) { return subjects_.lengths[a] < subjects_.lengths[b]; };
        if (!std::is_sorted(order.begin(), order.end(), shorter)) {
            std::stable_sort(order.begin(), order.end(), shorter);
        }
        return order;
    }

    Width start_width(const Query& query) const {
        int w = kBits8;
        while (query.open + query.extend > kernels_.max_gap[w]) {
            ++w;
        }
        return static_cast<Width>(w);
    }

    // Bounds need a floor that stays above what they add, and enough subjects for those scored again to weigh little.
    int first_round(const Query& query, size_t n) const {
        const Width width = start_width(query);
        const bool bounds = width == kBits8 && query.floor > query.open + kColumnsPerPass * query.extend &&
                            n >= kMinBoundBatches * static_cast<size_t>(kernels_.lanes[kBits8]);
        return bounds ? 0 : 1 + width;
    }

    double many_cost(const Query& query, double longest) const {
        return longest * query.length * (kernels_.lanes[width_] / kernels_.vector_lanes[width_]);
    }

    double one_cost(const Query& query, double length) const {
        const int32_t lanes = kernels_.vector_lanes[width_];
        return length * ((query.length + lanes - 1) / lanes * kOneVectorCost + kOneColumnCost);
    }

    // Takes the subjects that go in windows from the places, longest first; where one does not, no shorter one does.
    void cut_windows(uint32_t q) {
        const Query& query = queries_[q];
        Remaining& remaining = remaining_[q];
        const uint64_t span = longest_span(query);
        const uint64_t lanes = static_cast<uint64_t>(kernels_.lanes[width_]);
        while (!remaining.places.empty()) {
            const uint32_t place = remaining.places.back();
            const uint64_t length = subjects_.lengths[place];
            if (length / lanes < kMinWindowSteps * span) {
                break;
            }
            // Full batches of windows, of at most so many columns, and enough of them for the threads.
            uint64_t batches = (length + lanes * kMaxWindowStep - 1) / (lanes * kMaxWindowStep);
            const uint64_t threads = static_cast<uint64_t>(n_threads_);
            if (batches < threads && length / (lanes * threads) >= kMinWindowSteps * span) {
                batches = threads;
            }
            const uint64_t step = (length + lanes * batches - 1) / (lanes * batches);
            if (static_cast<double>(batches) * many_cost(query, static_cast<double>(step + span)) >
                one_cost(query, static_cast<double>(length))) {
                break;
            }
            remaining.places.pop_back();
            for (uint64_t first = 0; first < length; first += step) {
                const uint64_t stop = std::min(length, first + step + span - 1);
                const uint64_t covered = std::min(length, first + step) - first;
                remaining.windows.push_back({place, static_cast<uint32_t>(first), static_cast<uint32_t>(stop - first),
                                             static_cast<uint32_t>(covered), 0});
            }
        }
        sort_windows(remaining.windows);
    }

    static void sort_windows(std::vector<Window>& windows) {
        std::stable_sort(windows.begin(), windows.end(),
                         [](const Window& a, const Window& b) { return a.length < b.length; });
    }

    // Cuts n items, shortest first, into batches from the longest down. The longest of a batch go to the kernel for one
    // where that costs less than the rows of empty lanes they would drag along.
    template <class LengthOf>
    void plan(uint32_t q, bool windows, size_t n, const LengthOf& length_of) {
        const Query& query = queries_[q];
        const size_t lanes = static_cast<size_t>(kernels_.lanes[width_]);
        size_t stop = n;
        while (stop > 0) {
            const size_t count = std::min(lanes, stop);
            double cheapest = many_cost(query, length_of(stop - 1));
            double apart = 0;
            size_t evicted = 0;
            for (size_t k = 1; k <= count; ++k) {
                apart += one_cost(query, length_of(stop - k));
                if (apart > cheapest) {
                    break;
                }
                const double cost = apart + (k < count ? many_cost(query, length_of(stop - k - 1)) : 0);
                if (cost < cheapest) {
                    cheapest = cost;
                    evicted = k;
                }
            }
            for (size_t k = 1; k <= evicted; ++k) {
                work_.push_back({q, true, windows, stop - k, 1, one_cost(query, length_of(stop - k))});
            }
            stop -= evicted;
            if (evicted == 0) {
                work_.push_back({q, false, windows, stop - count, static_cast<int>(count), cheapest});
                stop -= count;
            }
        }
    }

    void do_work(const Work& work, Scratch& scratch, const Control& control) {
        const Query& query = queries_[work.query];
        Remaining& remaining = remaining_[work.query];
        const bool count_cells = round_ == remaining.first_round;
        // A floor that many subjects reach is no help; the rest of the round then scores exactly.
        const uint64_t n_items = remaining.places.size() + remaining.windows.size();
        const bool bounds = kRounds[round_].bounds && !work.one &&
                            __atomic_load_n(&remaining.reached, __ATOMIC_RELAXED) * kMinBoundShare <= n_items;
        Subject batch[kMaxLanes];
        int32_t results[kMaxLanes];
        uint32_t longest = 0;
        uint64_t residues = 0;
        for (int i = 0; i < work.count; ++i) {
            const size_t item = work.first + static_cast<size_t>(i);
            if (work.windows) {
                const Window& window = remaining.windows[item];
                batch[i] = {subjects_.residues + subjects_.starts[window.place] + window.first, window.length};
                residues += window.step;
            } else {
                const uint32_t place = remaining.places[item];
                batch[i] = {subjects_.residues + subjects_.starts[place], subjects_.lengths[place]};
                residues += subjects_.lengths[place];
            }
            longest = std::max(longest, batch[i].length);
        }
        if (work.one) {
            // The kernel counts as it goes, so that one long pair shows progress; cells done twice do not count.
            uint64_t elsewhere = 0;
            const bool whole = count_cells && !work.windows;
            const Control counted{control.stop, whole ? control.cells : &elsewhere};
            kernels_.one[width_](query, batch[0], scratch.at_least(kernels_.one_scratch[width_](query)), results, counted);
            residues = whole ? 0 : residues;
        } else {
            uint8_t* memory = scratch.at_least(kernels_.many_scratch[width_](query, longest));
            (bounds ? kernels_.bound : kernels_.many[width_])(query, batch, work.count, memory, results, control);
        }
        if (__atomic_load_n(control.stop, __ATOMIC_RELAXED) != 0) {
            return;
        }
        if (bounds) {
            uint64_t reached = 0;
            for (int i = 0; i < work.count; ++i) {
                results[i] = results[i] == kSaturated || results[i] >= query.floor ? kSaturated : 0;
                reached += results[i] == kSaturated;
            }
            __atomic_fetch_add(&remaining.reached, reached, __ATOMIC_RELAXED);
        }
        for (int i = 0; i < work.count; ++i) {
            const size_t item = work.first + static_cast<size_t>(i);
            if (work.windows) {
                remaining.windows[item].score = results[i];
            } else {
                scores_[work.query * static_cast<size_t>(subjects_.n) + remaining.places[item]] = results[i];
            }
        }
        if (count_cells) {
            __atomic_fetch_add(control.cells, residues * static_cast<uint64_t>(query.length), __ATOMIC_RELAXED);
        }
    }

    // Leaves for the next round what saturated or, in the round for bounds, may reach the floor.
    void keep_unfinished(uint32_t q) {
        Remaining& remaining = remaining_[q];
        int32_t* scores = scores_ + q * static_cast<size_t>(subjects_.n);
        std::vector<uint32_t> places;
        for (const uint32_t place : remaining.places) {
            if (scores[place] == kSaturated) {
                places.push_back(place);
            }
        }
        std::vector<Window> windows;
        for (const Window& window : remaining.windows) {
            if (window.score == kSaturated) {
                windows.push_back(window);
            } else {
                scores[window.place] = std::max(scores[window.place], window.score);
            }
        }
        remaining.places = std::move(places);
        remaining.windows = std::move(windows);
    }

    void report() {
        const uint64_t cells = __atomic_load_n(&cells_, __ATOMIC_RELAXED);
        poll_(cells - reported_);
        reported_ = cells;
    }

    const std::vector<Query>& queries_;
    const Subjects& subjects_;
    int32_t* scores_;
    const Kernels& kernels_;
    int n_threads_;
    const Poll& poll_;
    std::vector<Remaining> remaining_;
    std::vector<Work> work_;
    int round_ = 0;
    Width width_ = kBits8;
    uint64_t cells_ = 0;
    uint64_t reported_ = 0;
};

}  // namespace

std::vector<uint64_t> score_subjects(const std::vector<Query>& queries, const Subjects& subjects, int32_t* scores,
                                     const Kernels& kernels, int n_threads, const Poll& poll) {
    return Search(queries, subjects, scores, kernels, n_threads, poll).run();
}

}  // namespace swsearch::score
