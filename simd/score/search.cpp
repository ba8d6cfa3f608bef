// Divides a search into items of work, runs them on threads, and scores saturated subjects again. Inputs and output are
// those of score_subjects (search.hpp). docs/design/cpu-engine.md describes batches, windows, rounds and the choice of
// bounds; queries that can share passes over the subjects do so in their first round (group.hpp).

#include "score/search.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "common/aligned.hpp"
#include "score/group.hpp"

namespace swsearch::score {

namespace {

// Measured costs of the kernel for one subject, relative to the kernel for many: of a vector of cells, and of a column.
constexpr double kOneVectorCost = 1.3;
constexpr double kOneColumnCost = 6.5;
// Windows overlap by the largest span of an alignment. They are used only if their new part is at least this number of
// times as long as the overlap.
constexpr uint64_t kMinWindowSteps = 3;
constexpr uint64_t kMaxWindowStep = 1 << 16;

// Bounds are used if there are at least kMinBoundBatches full batches.
constexpr size_t kMinBoundBatches = 16;
// Measured costs of the kernels for bounds, relative to the exact kernel: of a row, and of the profile and the
// transposition, in rows of the exact kernel.
constexpr double kBoundRowCost[kBoundKernels] = {0.48, 0.53, 0.93};
constexpr double kProfileCost = 13;
// A kernel for bounds is used until this share of the subjects must be scored again. The share refers to all subjects,
// not to those scored so far, because long subjects come first and score higher.
constexpr double kMaxBoundShare[kBoundKernels] = {0.5, 0.4, 1.0 / 32};
// The order in which kernels are tried on a sample: the one that is mostly chosen first. With bands of six rows, 1.3 to
// 3.2 times as many residues reach the floor as with four, so they are tried only if this number of times is few
// enough.
constexpr int kTrials[kBoundKernels] = {1, 0, 2};
constexpr double kMoreReach[kBoundKernels] = {2.5, 0, 0};
// If a kernel rejects less than this share of a sample, no other is tried.
constexpr double kMinRejected = 0.25;
// The sample for the choice of a kernel: one batch in kSampleShare, at most kMaxSample, in equal steps of residues, so
// that it predicts the residues that must be scored again. Longer subjects are sampled in part. The subjects of the
// sample are bounded again later: with one batch in 32 a small search took up to a tenth longer.
constexpr size_t kSampleShare = 64;
constexpr size_t kMaxSample = 8;
constexpr uint32_t kSampleColumns = 4096;

// A batch for the kernel for many subjects, with all queries of a group, or one long item for the kernel for one
// subject, with one query. Items are subjects or windows of the group.
struct Work {
    uint32_t group;
    bool windows;
    bool one;
    int query;  // number of the query in the group, for the kernel for one subject
    size_t first;
    int count;
    double cost;
};

// The largest number of subject residues that an optimal local alignment can span. Its pairs score at most the sum of
// the best scores of all rows, and its gaps must cost less than that. Each residue beyond the query's length costs at
// least `extend`.
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

// The rounds over the subjects that are left to score: one for each kernel for bounds, then each width of the lanes. A
// query takes part in at most one round of bounds.
struct Round {
    Width width;
    int bound;  // number of the kernel for bounds, or kNoBound
};
constexpr int kNoBound = -1;
constexpr Round kRounds[] = {{kBits8, 0},        {kBits8, 1},         {kBits8, 2},
                             {kBits8, kNoBound}, {kBits16, kNoBound}, {kBits32, kNoBound}};
constexpr int kExactRound = kBoundKernels;  // the first round with exact scores

class Search {
   public:
    Search(const std::vector<Query>& queries, const Floors& floors, const Subjects& subjects, int32_t* scores,
           const Kernels& kernels, int band_rows, const Threads& threads)
        : queries_(queries),
          floors_(floors),
          subjects_(subjects),
          scores_(scores),
          kernels_(kernels),
          band_rows_(band_rows),
          threads_(threads),
          observer_(threads.observer),
          counts_(queries.size()) {}

    std::vector<ScoreCounts> run() {
        std::fill(scores_, scores_ + queries_.size() * static_cast<size_t>(subjects_.n), 0);
        begin();
        for (round_ = 0; round_ < static_cast<int>(std::size(kRounds)); ++round_) {
            width_ = kRounds[round_].width;
            work_.clear();
            for (uint32_t g = 0; g < groups_.size(); ++g) {
                if (groups_[g].round == round_) {
                    plan_group(g);
                }
            }
            std::stable_sort(work_.begin(), work_.end(), [](const Work& a, const Work& b) { return a.cost > b.cost; });
            scratch_.resize(std::max(scratch_.size(), std::min(work_.size(), static_cast<size_t>(threads_.n))));
            parallel_for(work_.size(), threads_, [&](size_t i, size_t worker) { do_work(work_[i], scratch_[worker]); });
            std::vector<Group> later;
            for (Group& group : groups_) {
                if (group.round == round_) {
                    add_unfinished(group, later);
                } else {
                    later.push_back(std::move(group));
                }
            }
            groups_ = std::move(later);
        }
        for (uint32_t q = 0; q < queries_.size(); ++q) {
            const int32_t* scores = scores_of(q);
            const int32_t largest = kernels_.largest[start_width(queries_[q])];
            counts_[q].n_wide = static_cast<uint64_t>(
                std::count_if(scores, scores + subjects_.n, [&](int32_t score) { return score >= largest; }));
        }
        return counts_;
    }

   private:
    int32_t* scores_of(uint32_t query) const { return scores_ + query * static_cast<size_t>(subjects_.n); }

    void begin() {
        const std::vector<uint32_t> order = subjects_by_length();
        groups_ = group_queries(queries_, first_rounds(order));
        for (Group& group : groups_) {
            group.subjects = order;
        }
    }

    std::vector<uint32_t> subjects_by_length() const {
        std::vector<uint32_t> order;
        order.reserve(subjects_.n);
        for (uint32_t subject = 0; subject < subjects_.n; ++subject) {
            if (subjects_.lengths[subject] > 0) {
                order.push_back(subject);
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

    // The round in which each query begins.
    std::vector<int> first_rounds(const std::vector<uint32_t>& order) {
        std::vector<int> rounds;
        std::vector<size_t> to_choose;
        for (size_t q = 0; q < queries_.size(); ++q) {
            const Query& query = queries_[q];
            const Width width = start_width(query);
            rounds.push_back(kExactRound + width);
            // A floor must be above what the bound adds to an E of 0.
            if (width != kBits8 || floors_.highest(q) <= query.open + kColumnsPerPass * query.extend) {
                continue;
            }
            if (band_rows_ == kChooseBand) {
                to_choose.push_back(rounds.size() - 1);
            } else if (band_rows_ != kNoBand) {
                rounds.back() =
                    static_cast<int>(std::find(kBandSizes, kBandSizes + kBoundKernels, band_rows_) - kBandSizes);
            }
        }
        if (!to_choose.empty() && order.size() >= kMinBoundBatches * static_cast<size_t>(kernels_.lanes[kBits8])) {
            choose_bounds(order, to_choose, rounds);
        }
        return rounds;
    }

    // Chooses the kernel with the lowest cost, including the exact scores of the subjects that reach the floor. A
    // kernel is not tried if it could not be better with the share of subjects that is expected to reach the floor.
    void choose_bounds(const std::vector<uint32_t>& order, std::vector<size_t>& queries, std::vector<int>& rounds) {
        const std::vector<size_t> batches = sample(order);
        std::vector<double> lowest;
        std::vector<double> share_before(queries.size(), 0);
        for (const size_t q : queries) {
            lowest.push_back(queries_[q].length + kProfileCost);
        }
        for (const int kernel : kTrials) {
            std::vector<size_t> chosen;
            for (size_t i = 0; i < queries.size(); ++i) {
                if (total_cost(queries_[queries[i]], kernel, kMoreReach[kernel] * share_before[i]) < lowest[i]) {
                    chosen.push_back(i);
                }
            }
            std::vector<uint64_t> reached(chosen.size());
            const size_t n = batches.size();
            scratch_.resize(std::max(scratch_.size(), std::min(chosen.size() * n, static_cast<size_t>(threads_.n))));
            parallel_for(chosen.size() * n, threads_, [&](size_t task, size_t worker) {
                const uint64_t found =
                    sample_bounds(queries[chosen[task / n]], order, batches[task % n], kernel, scratch_[worker]);
                __atomic_fetch_add(&reached[task / n], found, __ATOMIC_RELAXED);
            });
            for (size_t k = 0; k < chosen.size(); ++k) {
                const size_t i = chosen[k];
                const Query& query = queries_[queries[i]];
                const double share = static_cast<double>(reached[k]) / static_cast<double>(n * sample_lanes());
                const double cost = total_cost(query, kernel, share);
                share_before[i] = share;
                if (cost < lowest[i] && share < kMaxBoundShare[kernel]) {
                    lowest[i] = cost;
                    rounds[queries[i]] = kernel;
                } else if (share > 1 - kMinRejected) {
                    lowest[i] = 0;
                }
            }
        }
    }

    // The cost of one column, in rows of the exact kernel, if a share of the subjects reaches the floor.
    static double total_cost(const Query& query, int kernel, double share) {
        const int32_t rows = kBandSizes[kernel];
        const double bound = (query.length + rows - 1) / rows * rows * kBoundRowCost[kernel] + kProfileCost;
        return bound + share * (query.length + kProfileCost);
    }

    size_t sample_lanes() const { return static_cast<size_t>(kernels_.lanes[kBits8]); }

    // The first subjects of the batches of the sample.
    std::vector<size_t> sample(const std::vector<uint32_t>& order) const {
        const size_t n = std::clamp(order.size() / sample_lanes() / kSampleShare, size_t{1}, kMaxSample);
        uint64_t residues = 0;
        for (const uint32_t subject : order) {
            residues += subjects_.lengths[subject];
        }
        std::vector<size_t> batches;
        uint64_t passed = 0;
        for (size_t i = 0; i < order.size() && batches.size() < n; ++i) {
            passed += subjects_.lengths[order[i]];
            if (passed * 2 * n >= residues * (2 * batches.size() + 1)) {
                batches.push_back(std::min(i, order.size() - sample_lanes()));
            }
        }
        return batches;
    }

    // The number of subjects of a batch whose bound reaches the floor.
    uint64_t sample_bounds(size_t number, const std::vector<uint32_t>& order, size_t first, int kernel,
                           Scratch& scratch) {
        const Query& query = queries_[number];
        Subject batch[kMaxLanes];
        uint32_t lengths[kMaxLanes];
        int32_t scores[kMaxLanes];
        uint32_t longest = 0;
        const int n = kernels_.lanes[kBits8];
        for (int i = 0; i < n; ++i) {
            const uint32_t subject = order[first + static_cast<size_t>(i)];
            const uint32_t length = std::min(subjects_.lengths[subject], kSampleColumns);
            lengths[i] = subjects_.lengths[subject];
            batch[i] = {subjects_.residues + subjects_.starts[subject], length};
            longest = std::max(longest, length);
        }
        uint8_t* memory = scratch.at_least(kernels_.many_scratch[kBits8](&query, 1, longest));
        kernels_.bounds[kernel](&query, 1, batch, n, memory, scores, {&observer_.stop, &observer_.cells});
        return observer_.stop_requested() ? 0 : mark_bounds(number, lengths, n, scores);
    }

    double many_cost(const Group& group, double longest) const {
        return longest * static_cast<double>(group.n_rows) * (kernels_.lanes[width_] / kernels_.vector_lanes[width_]);
    }

    double one_cost(const Query& query, double length) const {
        const int32_t lanes = kernels_.vector_lanes[width_];
        return length * ((query.length + lanes - 1) / lanes * kOneVectorCost + kOneColumnCost);
    }

    double one_cost(const Group& group, double length) const {
        return std::accumulate(group.queries.begin(), group.queries.end(), 0.0,
                               [&](double sum, const Query& query) { return sum + one_cost(query, length); });
    }

    // Replaces subjects by windows, the longest first. If a subject is not divided into windows, no shorter one is.
    void cut_windows(Group& group) {
        uint64_t span = 0;
        for (const Query& query : group.queries) {
            span = std::max(span, longest_span(query));
        }
        const uint64_t lanes = static_cast<uint64_t>(kernels_.lanes[width_]);
        while (!group.subjects.empty()) {
            const uint32_t subject = group.subjects.back();
            const uint64_t length = subjects_.lengths[subject];
            if (length / lanes < kMinWindowSteps * span) {
                break;
            }
            // The number of full batches of windows with at most kMaxWindowStep columns, raised to enough batches for
            // the threads.
            uint64_t batches = (length + lanes * kMaxWindowStep - 1) / (lanes * kMaxWindowStep);
            const uint64_t threads = static_cast<uint64_t>(threads_.n);
            if (batches < threads && length / (lanes * threads) >= kMinWindowSteps * span) {
                batches = threads;
            }
            const uint64_t step = (length + lanes * batches - 1) / (lanes * batches);
            if (static_cast<double>(batches) * many_cost(group, static_cast<double>(step + span)) >
                one_cost(group, static_cast<double>(length))) {
                break;
            }
            group.subjects.pop_back();
            for (uint64_t first = 0; first < length; first += step) {
                const uint64_t stop = std::min(length, first + step + span - 1);
                const uint64_t covered = std::min(length, first + step) - first;
                group.windows.push_back({subject, static_cast<uint32_t>(first), static_cast<uint32_t>(stop - first),
                                         static_cast<uint32_t>(covered)});
            }
        }
        std::stable_sort(group.windows.begin(), group.windows.end(),
                         [](const Window& a, const Window& b) { return a.length < b.length; });
    }

    void plan_group(uint32_t g) {
        Group& group = groups_[g];
        if (group.fresh) {
            cut_windows(group);
        }
        group.window_scores.assign(group.windows.size() * group.queries.size(), 0);
        plan(g, false, group.subjects.size(), [&](size_t i) { return subjects_.lengths[group.subjects[i]]; });
        plan(g, true, group.windows.size(), [&](size_t i) { return group.windows[i].length; });
    }

    // Divides n items, given shortest first, into batches, beginning with the longest. The longest items of a batch are
    // scored by the kernel for one subject if that costs less than the padding of the other lanes.
    template <class LengthOf>
    void plan(uint32_t g, bool windows, size_t n, const LengthOf& length_of) {
        const Group& group = groups_[g];
        const size_t lanes = static_cast<size_t>(kernels_.lanes[width_]);
        size_t stop = n;
        while (stop > 0) {
            const size_t count = std::min(lanes, stop);
            double cheapest = many_cost(group, length_of(stop - 1));
            double apart = 0;
            size_t evicted = 0;
            for (size_t k = 1; k <= count; ++k) {
                apart += one_cost(group, length_of(stop - k));
                if (apart > cheapest) {
                    break;
                }
                const double cost = apart + (k < count ? many_cost(group, length_of(stop - k - 1)) : 0);
                if (cost < cheapest) {
                    cheapest = cost;
                    evicted = k;
                }
            }
            for (size_t k = 1; k <= evicted; ++k) {
                for (int q = 0; q < group.size(); ++q) {
                    const double cost = one_cost(group.queries[static_cast<size_t>(q)], length_of(stop - k));
                    work_.push_back({g, windows, true, q, stop - k, 1, cost});
                }
            }
            stop -= evicted;
            if (evicted == 0) {
                work_.push_back({g, windows, false, 0, stop - count, static_cast<int>(count), cheapest});
                stop -= count;
            }
        }
    }

    void do_work(const Work& work, Scratch& scratch) {
        Group& group = groups_[work.group];
        Subject batch[kMaxLanes];
        uint32_t lengths[kMaxLanes];  // of the complete subjects
        uint32_t longest = 0;
        uint64_t residues = 0;
        for (int i = 0; i < work.count; ++i) {
            const size_t item = work.first + static_cast<size_t>(i);
            if (work.windows) {
                const Window& window = group.windows[item];
                batch[i] = {subjects_.residues + subjects_.starts[window.subject] + window.first, window.length};
                lengths[i] = subjects_.lengths[window.subject];
                residues += window.step;
            } else {
                const uint32_t subject = group.subjects[item];
                batch[i] = {subjects_.residues + subjects_.starts[subject], subjects_.lengths[subject]};
                lengths[i] = subjects_.lengths[subject];
                residues += subjects_.lengths[subject];
            }
            longest = std::max(longest, batch[i].length);
        }
        if (work.one) {
            score_one(work, batch[0], residues, scratch);
            return;
        }
        // If many subjects reach the floor, bounds save no work, and the rest of the round scores exactly.
        const double n_scores = static_cast<double>(group.n_items() * group.queries.size());
        const int bound = kRounds[round_].bound;
        const bool bounds =
            bound != kNoBound &&
            static_cast<double>(__atomic_load_n(&group.reached, __ATOMIC_RELAXED)) <= kMaxBoundShare[bound] * n_scores;
        const Query* const queries = group.queries.data();
        std::vector<int32_t> results(static_cast<size_t>(work.count) * group.queries.size());
        uint8_t* memory = scratch.at_least(kernels_.many_scratch[width_](queries, group.size(), longest));
        (bounds ? kernels_.bounds[bound] : kernels_.many[width_])(queries, group.size(), batch, work.count, memory,
                                                                  results.data(), {&observer_.stop, &observer_.cells});
        if (observer_.stop_requested()) {
            return;
        }
        for (int q = 0; q < group.size(); ++q) {
            int32_t* const scores = results.data() + q * work.count;
            if (bounds) {
                const uint32_t number = group.numbers[static_cast<size_t>(q)];
                const uint64_t reached = mark_bounds(number, lengths, work.count, scores);
                __atomic_fetch_add(&group.reached, reached, __ATOMIC_RELAXED);
                uint64_t& n_bounded = counts_[number].n_bounded;
                __atomic_fetch_add(&n_bounded, work.windows ? 0 : static_cast<uint64_t>(work.count) - reached,
                                   __ATOMIC_RELAXED);
            }
            store(work, q, scores);
        }
        if (group.fresh) {
            count(residues * static_cast<uint64_t>(group.n_rows));
        }
    }

    void score_one(const Work& work, const Subject& subject, uint64_t residues, Scratch& scratch) {
        const Group& group = groups_[work.group];
        const Query& query = group.queries[static_cast<size_t>(work.query)];
        // The kernel counts while it runs, so that a single long pair reports progress. Cells are counted only once.
        uint64_t elsewhere = 0;
        const bool whole = group.fresh && !work.windows;
        const Control control{&observer_.stop, whole ? &observer_.cells : &elsewhere};
        int32_t score = 0;
        kernels_.one[width_](query, subject, scratch.at_least(kernels_.one_scratch[width_](query)), &score, control);
        if (observer_.stop_requested()) {
            return;
        }
        store(work, work.query, &score);
        if (group.fresh && !whole) {
            count(residues * static_cast<uint64_t>(query.length));
        }
    }

    void count(uint64_t cells) { __atomic_fetch_add(&observer_.cells, cells, __ATOMIC_RELAXED); }

    // Replaces the bounds of a query below the floors of n subjects of these lengths by 0 and marks the others, because
    // their subjects must be scored; returns their number.
    uint64_t mark_bounds(size_t query, const uint32_t* lengths, int n, int32_t* scores) const {
        uint64_t reached = 0;
        for (int i = 0; i < n; ++i) {
            scores[i] = scores[i] == kSaturated || scores[i] >= floors_.of(query, lengths[i]) ? kSaturated : 0;
            reached += scores[i] == kSaturated;
        }
        return reached;
    }

    void store(const Work& work, int q, const int32_t* scores) {
        Group& group = groups_[work.group];
        if (work.windows) {
            const size_t first = static_cast<size_t>(q) * group.windows.size() + work.first;
            std::copy_n(scores, work.count, group.window_scores.data() + first);
            return;
        }
        int32_t* const row = scores_of(group.numbers[static_cast<size_t>(q)]);
        for (int i = 0; i < work.count; ++i) {
            row[group.subjects[work.first + static_cast<size_t>(i)]] = scores[i];
        }
    }

    // Adds to the groups of later rounds, for each query separately, the subjects that have saturated or that, after
    // bounds, may reach the floor.
    void add_unfinished(const Group& group, std::vector<Group>& later) const {
        for (size_t q = 0; q < group.queries.size(); ++q) {
            const uint32_t number = group.numbers[q];
            int32_t* const scores = scores_of(number);
            Group rest(number, queries_[number], std::max(round_ + 1, kExactRound));
            rest.fresh = false;
            std::copy_if(group.subjects.begin(), group.subjects.end(), std::back_inserter(rest.subjects),
                         [&](uint32_t subject) { return scores[subject] == kSaturated; });
            for (size_t w = 0; w < group.windows.size(); ++w) {
                const Window& window = group.windows[w];
                const int32_t score = group.window_scores[q * group.windows.size() + w];
                if (score == kSaturated) {
                    rest.windows.push_back(window);
                } else {
                    scores[window.subject] = std::max(scores[window.subject], score);
                }
            }
            if (rest.n_items() > 0) {
                later.push_back(std::move(rest));
            }
        }
    }

    const std::vector<Query>& queries_;
    const Floors& floors_;
    const Subjects& subjects_;
    int32_t* scores_;
    const Kernels& kernels_;
    int band_rows_;
    const Threads& threads_;
    Observer& observer_;
    std::vector<ScoreCounts> counts_;
    std::vector<Scratch> scratch_;  // one per worker
    std::vector<Group> groups_;
    std::vector<Work> work_;
    int round_ = 0;
    Width width_ = kBits8;
};

}  // namespace

std::vector<ScoreCounts> score_subjects(const std::vector<Query>& queries, const Floors& floors,
                                        const Subjects& subjects, int32_t* scores, const Kernels& kernels,
                                        int band_rows, const Threads& threads) {
    return Search(queries, floors, subjects, scores, kernels, band_rows, threads).run();
}

int32_t bound_subjects(const Query& query, const Subjects& subjects, int32_t* bounds, const Kernels& kernels,
                       int band_rows) {
    const int kernel = static_cast<int>(std::find(kBandSizes, kBandSizes + kBoundKernels, band_rows) - kBandSizes);
    const uint32_t lanes = static_cast<uint32_t>(kernels.lanes[kBits8]);
    const int32_t stop = 0;
    uint64_t cells = 0;
    Scratch scratch;
    for (uint32_t first = 0; first < subjects.n; first += lanes) {
        Subject batch[kMaxLanes];
        uint32_t longest = 0;
        const uint32_t n = std::min(lanes, subjects.n - first);
        for (uint32_t i = 0; i < n; ++i) {
            batch[i] = {subjects.residues + subjects.starts[first + i], subjects.lengths[first + i]};
            longest = std::max(longest, batch[i].length);
        }
        kernels.bounds[kernel](&query, 1, batch, static_cast<int>(n),
                               scratch.at_least(kernels.many_scratch[kBits8](&query, 1, longest)), bounds + first,
                               {&stop, &cells});
    }
    return kernels.largest_bound[kernel];
}

}  // namespace swsearch::score
