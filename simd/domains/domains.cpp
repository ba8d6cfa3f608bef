// Forward, Backward and their use: where domains are (Regions), how regions with several domains are divided (Parser),
// and the alignment of one domain (Envelope).

#include "domains/domains.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace swsearch::domains {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();
constexpr double kLarge = 0x1p256;
constexpr int kStep = 256;  // exponents are multiples of it
// Limits of the probability that a residue belongs to a domain: the most probable residue of a region, and all others.
constexpr double kPeak = 0.25, kEdge = 0.1;
// The number of domains that are expected to end before a residue and to begin behind it, from which on a region is
// divided.
constexpr double kSeveral = 0.2;

// The residues before, between and behind domains, for a subject of `length` residues.
struct Flanks {
    double loop, move;        // probabilities that a residue follows, and that none does
    double again, at_an_end;  // that another domain follows a domain, and that none does

    static Flanks of_any_number(std::size_t length) {
        const double n = static_cast<double>(length);
        return {n / (n + 3.0), 3.0 / (n + 3.0), 0.5, 0.5};
    }
    static Flanks of_one(std::size_t length) {
        const double n = static_cast<double>(length);
        return {n / (n + 2.0), 2.0 / (n + 2.0), 0.0, 1.0};
    }
};

// The states outside of the model after a residue: before, between and behind domains, and the two at whose crossing a
// domain begins and ends. They are to be multiplied by 2^exponent.
struct Outside {
    double before = 0.0, between = 0.0, behind = 0.0, begin = 0.0, end = 0.0;
    std::int64_t exponent = 0;

    void scale(double factor) {
        for (double* const value : {&before, &between, &behind, &begin, &end}) *value *= factor;
    }
};

double times_power(double value, std::int64_t exponent) {
    constexpr std::int64_t kMost = 2'000;  // the result is 0 or infinite beyond
    return std::ldexp(value, static_cast<int>(std::clamp(exponent, -kMost, kMost)));
}

bool is_at_least(const Total& total, std::int64_t least) {
    return total.value > 0.0 && std::ilogb(total.value) + total.exponent >= least;
}

// The sum of value(i) for all i below n, in four parts, which do not wait for each other.
template <class Value>
double sum_in_parts(std::size_t n, const Value& value) {
    double parts[4] = {};
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        for (std::size_t j = 0; j < 4; ++j) parts[j] += value(i + j);
    }
    for (; i < n; ++i) parts[0] += value(i);
    return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

// The deletions of a row: each value is to be increased by the one before it times a factor. Four values are increased
// by each other first, so that a row waits for a quarter of its products only.
class Deletions {
   public:
    explicit Deletions(std::vector<double> factors) : factors_(std::move(factors)), products_(factors_) {
        for (std::size_t i = 0; i < products_.size(); ++i) {
            if (i % kTogether != 0) products_[i] *= products_[i - 1];
        }
    }

    // Increases values[0], values[kDirection], …; `before` is the value before the first.
    template <std::ptrdiff_t kDirection>
    void increase(double* values, double before) const {
        const std::size_t n = factors_.size();
        std::size_t i = 0;
        for (; i + kTogether <= n; i += kTogether) {
            double own[kTogether];
            for (std::size_t j = 0; j < kTogether; ++j) {
                own[j] = values[static_cast<std::ptrdiff_t>(j) * kDirection];
                if (j > 0) own[j] += factors_[i + j] * own[j - 1];
            }
            for (std::size_t j = 0; j < kTogether; ++j) {
                own[j] += products_[i + j] * before;
                values[static_cast<std::ptrdiff_t>(j) * kDirection] = own[j];
            }
            before = own[kTogether - 1];
            values += static_cast<std::ptrdiff_t>(kTogether) * kDirection;
        }
        for (; i < n; ++i, values += kDirection) before = *values += factors_[i] * before;
    }

   private:
    static constexpr std::size_t kTogether = 4;

    std::vector<double> factors_, products_;  // products of the factors since the last multiple of kTogether
};

// A part of a subject.
struct Residues {
    const std::uint8_t* codes;
    std::size_t length;

    const double* odds(const Model& model, std::size_t i) const { return model.odds_of(codes[i]); }
};

// One row of the three states of each position; index 0 stands for the position before the first.
struct Row {
    explicit Row(std::size_t length, double value = 0.0)
        : match(length + 2, value), insertion(length + 2, value), deletion(length + 2, value) {}

    void scale(double factor) {
        for (auto* const values : {&match, &insertion, &deletion}) {
            for (double& value : *values) value *= factor;
        }
    }

    std::vector<double> match, insertion, deletion;
};

// The sums of all paths to or from a place of a subject.
class Sums {
   public:
    const Row& row() const { return row_; }
    const Outside& outside() const { return outside_; }

   protected:
    Sums(const Model& model, const Flanks& flanks, std::vector<double> deletions)
        : model_(model), flanks_(flanks), deletions_(std::move(deletions)), row_(model.length), next_(row_) {}

    // Changes the exponent if one of the largest values has become large.
    void rescale(double value) {
        if (value <= kLarge) return;
        outside_.scale(1.0 / kLarge);
        row_.scale(1.0 / kLarge);
        outside_.exponent += kStep;
    }

    const Model& model_;
    Flanks flanks_;
    Deletions deletions_;
    Row row_, next_;
    Outside outside_;
};

// The sums of all paths from the beginning, residue by residue.
class Forward : public Sums {
   public:
    Forward(const Model& model, const Flanks& flanks)
        : Sums(model, flanks, {model.transition(kDD), model.transition(kDD) + model.length - 1}) {
        outside_.before = 1.0;
        outside_.begin = flanks.move;
    }

    void add(const Residues& residues, std::size_t i) {
        const double* const odds = residues.odds(model_, i);
        const std::size_t length = model_.length;
        add_pairs_and_insertions(odds);
        const double* const md = model_.transition(kMD);
        for (std::size_t k = 2; k <= length; ++k) next_.deletion[k] = next_.match[k - 1] * md[k - 2];
        deletions_.increase<1>(&next_.deletion[2], 0.0);
        const double end = sum_in_parts(length, [this](std::size_t k) { return next_.match[k + 1]; }) +
                           sum_in_parts(length, [this](std::size_t k) { return next_.deletion[k + 1]; });
        std::swap(row_, next_);
        outside_.end = end;
        outside_.between = outside_.between * flanks_.loop + end * flanks_.again;
        outside_.behind = outside_.behind * flanks_.loop + end * flanks_.at_an_end;
        outside_.before *= flanks_.loop;
        outside_.begin = (outside_.before + outside_.between) * flanks_.move;
        rescale(end);
    }

    Total total() const { return {outside_.behind * flanks_.move, outside_.exponent}; }

   private:
    // The states that depend on the row before alone.
    void add_pairs_and_insertions(const double* odds) {
        const std::size_t length = model_.length;
        const double *const mm = model_.transition(kMM), *const im = model_.transition(kIM);
        const double *const dm = model_.transition(kDM), *const mi = model_.transition(kMI);
        const double* const ii = model_.transition(kII);
        const double *const match = row_.match.data(), *const insertion = row_.insertion.data();
        const double *const deletion = row_.deletion.data(), *const entry = model_.entry;
        double *const to_match = next_.match.data(), *const to_insertion = next_.insertion.data();
        const double begin = outside_.begin;
        to_match[1] = odds[0] * (begin * entry[0]);
        for (std::size_t k = 2; k <= length; ++k) {
            const double from_states =
                match[k - 1] * mm[k - 2] + insertion[k - 1] * im[k - 2] + deletion[k - 1] * dm[k - 2];
            to_match[k] = odds[k - 1] * (begin * entry[k - 1] + from_states);
        }
        for (std::size_t k = 1; k < length; ++k) to_insertion[k] = match[k] * mi[k - 1] + insertion[k] * ii[k - 1];
    }
};

// The sums of all paths to the end, from the last residue to the first.
class Backward : public Sums {
   public:
    Backward(const Model& model, const Flanks& flanks)
        : Sums(model, flanks,
               {std::make_reverse_iterator(model.transition(kDD) + model.length - 1),
                std::make_reverse_iterator(model.transition(kDD))}) {
        outside_.behind = flanks.move;
        outside_.end = outside_.behind * flanks.at_an_end;
        leave();
    }

    // From the values behind residue i to those before it.
    void add(const Residues& residues, std::size_t i) {
        const double* const odds = residues.odds(model_, i);
        for (std::size_t k = 1; k <= model_.length; ++k) row_.match[k] *= odds[k - 1];
        const double begin =
            sum_in_parts(model_.length, [this](std::size_t k) { return model_.entry[k] * row_.match[k + 1]; });
        outside_.begin = begin;
        outside_.behind *= flanks_.loop;
        outside_.between = outside_.between * flanks_.loop + begin * flanks_.move;
        outside_.before = outside_.before * flanks_.loop + begin * flanks_.move;
        outside_.end = outside_.behind * flanks_.at_an_end + outside_.between * flanks_.again;
        leave();
        rescale(begin);
    }

   private:
    // Makes the row from that of the residue behind, which has been multiplied by the odds of its pairs. Behind the
    // last residue, all values of that row are 0.
    void leave() {
        const std::size_t length = model_.length;
        const double *const mm = model_.transition(kMM), *const mi = model_.transition(kMI);
        const double *const md = model_.transition(kMD), *const im = model_.transition(kIM);
        const double *const ii = model_.transition(kII), *const dm = model_.transition(kDM);
        const double *const pair = row_.match.data() + 1, *const insertion = row_.insertion.data();
        double *const to_match = next_.match.data(), *const to_insertion = next_.insertion.data();
        double* const to_deletion = next_.deletion.data();
        const double end = outside_.end;
        for (std::size_t k = 1; k < length; ++k) {
            to_match[k] = end + pair[k] * mm[k - 1] + insertion[k] * mi[k - 1];
            to_insertion[k] = pair[k] * im[k - 1] + insertion[k] * ii[k - 1];
            to_deletion[k] = end + pair[k] * dm[k - 1];
        }
        to_match[length] = to_deletion[length] = end;
        to_insertion[length] = 0.0;
        deletions_.increase<-1>(to_deletion + length - 1, end);
        for (std::size_t k = 1; k < length; ++k) to_match[k] += to_deletion[k + 1] * md[k - 1];
        std::swap(row_, next_);
    }
};

std::vector<Outside> outsides_before(const Model& model, const Flanks& flanks, const Residues& residues, Total& total) {
    Forward sums(model, flanks);
    std::vector<Outside> found{sums.outside()};
    for (std::size_t i = 0; i < residues.length; ++i) {
        sums.add(residues, i);
        found.push_back(sums.outside());
    }
    total = sums.total();
    return found;
}

std::vector<Outside> outsides_behind(const Model& model, const Flanks& flanks, const Residues& residues) {
    Backward sums(model, flanks);
    std::vector<Outside> found(residues.length + 1);
    found.back() = sums.outside();
    for (std::size_t i = residues.length; i-- > 0;) {
        sums.add(residues, i);
        found[i] = sums.outside();
    }
    return found;
}

// Segments from a residue to before another one.
using Segments = std::vector<std::pair<std::size_t, std::size_t>>;

// The most probable path with any number of domains, of which only their first and last residues are kept.
class Parser {
   public:
    explicit Parser(const Model& model) : model_(model), row_(model.length + 1), next_(row_) {}

    Segments parse(const Residues& residues, const Flanks& flanks) {
        const std::size_t n = residues.length;
        std::vector<Step> steps(n + 1);
        std::fill(row_.begin(), row_.end(), Cell{});
        double before = 1.0, begin = flanks.move;
        Best between{}, behind{};
        for (std::size_t i = 1; i <= n; ++i) {
            const Best end = advance(residues.odds(model_, i - 1), begin, i - 1);
            Step& step = steps[i];
            step.start = end.start;
            step.enters_between = take(between, flanks.loop, end.value * flanks.again);
            step.enters_behind = take(behind, flanks.loop, end.value * flanks.at_an_end);
            before *= flanks.loop;
            step.begins_between = between.value > before;
            begin = std::max(before, between.value) * flanks.move;
            if (end.value > kLarge) {
                for (double* const value : {&before, &begin, &between.value, &behind.value}) *value /= kLarge;
                for (Cell& cell : row_) {
                    for (Best* const one : {&cell.match, &cell.insertion, &cell.deletion}) one->value /= kLarge;
                }
            }
        }
        return walked(steps);
    }

   private:
    struct Best {
        double value = 0.0;
        std::size_t start = 0;  // residues before the domain

        void take(double other, std::size_t from) {
            if (other > value) *this = {other, from};
        }
    };
    struct Cell {
        Best match, insertion, deletion;
    };
    struct Step {
        std::size_t start = 0;
        bool enters_between = false, enters_behind = false, begins_between = false;
    };

    static bool take(Best& known, double loop, double entering) {
        known.value *= loop;
        const bool enters = entering > known.value;
        if (enters) known.value = entering;
        return enters;
    }

    // Computes the next row, and returns the best end of a domain in it.
    Best advance(const double* odds, double begin, std::size_t n_before) {
        Best end{};
        const auto t = [this](Transition of, std::size_t k) { return model_.transition(of)[k - 1]; };
        for (std::size_t k = 1; k <= model_.length; ++k) {
            Cell& cell = next_[k];
            cell = Cell{};
            cell.match = {begin * model_.entry[k - 1], n_before};
            if (k > 1) {
                const Cell &above = row_[k - 1], &beside = next_[k - 1];
                cell.match.take(above.match.value * t(kMM, k - 1), above.match.start);
                cell.match.take(above.insertion.value * t(kIM, k - 1), above.insertion.start);
                cell.match.take(above.deletion.value * t(kDM, k - 1), above.deletion.start);
                cell.deletion.take(beside.match.value * t(kMD, k - 1), beside.match.start);
                cell.deletion.take(beside.deletion.value * t(kDD, k - 1), beside.deletion.start);
            }
            cell.match.value *= odds[k - 1];
            cell.insertion.take(row_[k].match.value * t(kMI, k), row_[k].match.start);
            cell.insertion.take(row_[k].insertion.value * t(kII, k), row_[k].insertion.start);
            end.take(cell.match.value, cell.match.start);
        }
        std::swap(row_, next_);
        return end;
    }

    static Segments walked(const std::vector<Step>& steps) {
        Segments found;
        std::size_t i = steps.size() - 1;
        while (i > 0 && !steps[i].enters_behind) --i;
        while (i > 0) {
            found.emplace_back(steps[i].start, i);
            i = steps[i].start;
            if (!steps[i].begins_between) break;
            while (i > 0 && !steps[i].enters_between) --i;
        }
        std::reverse(found.begin(), found.end());
        return found;
    }

    const Model& model_;
    std::vector<Cell> row_, next_;
};

// Where domains are: probabilities of each residue from Forward and Backward of the whole subject.
class Regions {
   public:
    Regions(const std::vector<Outside>& forward, const std::vector<Outside>& backward, const Flanks& flanks,
            const Total& total)
        : inside_(forward.size()), begun_(forward.size()), ended_(forward.size()) {
        for (std::size_t i = 1; i < forward.size(); ++i) {
            const Outside &above = forward[i - 1], &here = forward[i], &behind = backward[i];
            const auto share = [&](double product, std::int64_t exponent) {
                return times_power(product / total.value, exponent - total.exponent);
            };
            const double outside =
                above.before * behind.before + above.between * behind.between + above.behind * behind.behind;
            inside_[i] = 1.0 - share(outside * flanks.loop, above.exponent + behind.exponent);
            begun_[i] =
                begun_[i - 1] + share(above.begin * backward[i - 1].begin, above.exponent + backward[i - 1].exponent);
            ended_[i] = ended_[i - 1] + share(here.end * behind.end, here.exponent + behind.exponent);
        }
    }

    // The envelopes of `n_residues` residues from `first` on.
    Segments found(std::size_t first, std::size_t n_residues) const {
        constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
        Segments regions;
        std::size_t start = kNone;
        bool has_peak = false;
        const std::size_t last = first + n_residues;
        for (std::size_t i = first + 1; i <= last; ++i) {
            if (!has_peak) {
                if (start == kNone || inside_[i] - (begun_[i] - begun_[i - 1]) < kEdge) start = i - 1;
                has_peak = inside_[i] >= kPeak;
            } else if (inside_[i] - (ended_[i] - ended_[i - 1]) < kEdge) {
                regions.emplace_back(start, i);
                start = kNone;
                has_peak = false;
            }
        }
        if (has_peak) regions.emplace_back(start, last);
        return regions;
    }

    bool has_several(std::size_t first, std::size_t last) const {
        double most = 0.0;
        for (std::size_t i = first + 1; i <= last; ++i) {
            most = std::max(most, std::min(ended_[i] - ended_[first], begun_[last] - begun_[i - 1]));
        }
        return most >= kSeveral;
    }

   private:
    // By residue, from 1 on: whether it belongs to a domain; and how many domains begin at it or before, and end so.
    std::vector<double> inside_, begun_, ended_;
};

// One domain in an envelope: the probabilities of its states, and its alignment of the highest expected accuracy.
class Envelope {
   public:
    explicit Envelope(const Model& model)
        : model_(model), width_(model.length + 1), possible_(kTransitions * model.length) {
        std::transform(model.transitions, model.transitions + possible_.size(), possible_.begin(),
                       [](double probability) { return probability > 0.0 ? 0.0 : kImpossible; });
    }

    Domain decoded(const Flanks& flanks, const Residues& residues, std::int64_t least) {
        flanks_ = flanks;
        residues_ = residues;
        match_.resize((residues.length + 1) * width_);
        insertion_.resize(match_.size());
        choices_.resize(match_.size());
        outside_.resize(residues.length + 1);
        Domain domain{};
        domain.total = add_paths();
        domain.composition = expected_composition();
        if (is_at_least(domain.total, least)) align(domain);
        return domain;
    }

   private:
    // Where the best path to a state comes from. A pair has one of the first four.
    enum Choice : std::uint8_t {
        kBegin,
        kFromMatch,
        kFromInsertion,
        kFromDeletion,
        kPairMask = 3,
        kInsertionAgain = 4,
        kDeletionAgain = 8
    };

    // The probability of a residue to be outside of the domain, before or behind it.
    struct Flank {
        double before = 0.0, behind = 0.0;
    };

    // Computes the probabilities of all states and residues, and returns the sum of all paths.
    Total add_paths() {
        const std::size_t n = residues_.length;
        std::vector<Outside> forward(n + 1);
        Forward sums(model_, flanks_);
        forward[0] = sums.outside();
        for (std::size_t i = 1; i <= n; ++i) {
            sums.add(residues_, i - 1);
            forward[i] = sums.outside();
            std::copy_n(sums.row().match.begin(), width_, match_.begin() + offset(i));
            std::copy_n(sums.row().insertion.begin(), width_, insertion_.begin() + offset(i));
        }
        const Total total = sums.total();
        Backward behind(model_, flanks_);
        for (std::size_t i = n; i >= 1; --i) {
            const Outside& here = behind.outside();
            const auto share = [&](std::int64_t exponent) {
                return times_power(1.0 / total.value, exponent + here.exponent - total.exponent);
            };
            const double of_states = share(forward[i].exponent), of_flanks = share(forward[i - 1].exponent);
            for (std::size_t k = 1; k < width_; ++k) {
                match_[i * width_ + k] *= behind.row().match[k] * of_states;
                insertion_[i * width_ + k] *= behind.row().insertion[k] * of_states;
            }
            outside_[i] = {forward[i - 1].before * flanks_.loop * here.before * of_flanks,
                           forward[i - 1].behind * flanks_.loop * here.behind * of_flanks};
            behind.add(residues_, i - 1);
        }
        return total;
    }

    std::array<double, kAminoAcids> expected_composition() const {
        std::vector<double> expected(width_);  // of pairs
        double others = 0.0;
        for (std::size_t i = 1; i <= residues_.length; ++i) {
            const double *const pairs = &match_[i * width_], *const insertions = &insertion_[i * width_];
            double inserted = 0.0;
            for (std::size_t k = 1; k < width_; ++k) {
                expected[k] += pairs[k];
                inserted += insertions[k];
            }
            others += outside_[i].before + outside_[i].behind + inserted;
        }
        std::array<double, kAminoAcids> found{};
        for (std::size_t a = 0; a < kAminoAcids; ++a) {
            const double* const odds = model_.odds_of(static_cast<std::uint8_t>(a));
            for (std::size_t k = 1; k < width_; ++k) found[a] += expected[k] * odds[k - 1];
            found[a] = (found[a] + others) / static_cast<double>(residues_.length);
        }
        return found;
    }

    // Finds the path with the largest sum of probabilities among those whose transitions are possible.
    void align(Domain& domain) {
        const std::size_t n = residues_.length;
        Row row(model_.length, kImpossible), next(row);
        double before = 0.0, behind = kImpossible;
        std::size_t end_residue = 0, end_position = 0, best_residue = 0, best_position = 0;
        for (std::size_t i = 1; i <= n; ++i) {
            double end = kImpossible;
            for (std::size_t k = 1; k < width_; ++k) {
                advance(row, next, i, k, before);
                if (next.match[k] > end) {
                    end = next.match[k];
                    end_residue = i;
                    end_position = k;
                }
            }
            std::swap(row, next);
            behind += outside_[i].behind;
            if (end > behind) {
                behind = end;
                best_residue = end_residue;
                best_position = end_position;
            }
            before += outside_[i].before;
        }
        domain.accuracy = behind;
        walk(domain, best_residue, best_position);
    }

    void advance(const Row& row, Row& next, std::size_t i, std::size_t k, double before) {
        // The transitions of a position are at its index less one; of the position before, less two.
        const auto by = [this](Transition of, std::size_t index) { return possible_[of * model_.length + index]; };
        double best = model_.entry[k - 1] > 0.0 ? before : kImpossible;
        int choice = kBegin;
        const auto take = [&](double value, int from) {
            choice = value > best ? from : choice;
            best = std::max(value, best);
        };
        const auto gap = [&](double opened, double extended, int again) {
            choice |= extended > opened ? again : 0;
            return std::max(opened, extended);
        };
        double deletion = kImpossible;
        if (k > 1) {
            take(row.match[k - 1] + by(kMM, k - 2), kFromMatch);
            take(row.insertion[k - 1] + by(kIM, k - 2), kFromInsertion);
            take(row.deletion[k - 1] + by(kDM, k - 2), kFromDeletion);
            deletion = gap(next.match[k - 1] + by(kMD, k - 2), next.deletion[k - 1] + by(kDD, k - 2), kDeletionAgain);
        }
        next.match[k] = best + match_[i * width_ + k];
        next.deletion[k] = deletion;
        next.insertion[k] = insertion_[i * width_ + k] +
                            gap(row.match[k] + by(kMI, k - 1), row.insertion[k] + by(kII, k - 1), kInsertionAgain);
        choices_[i * width_ + k] = static_cast<std::uint8_t>(choice);
    }

    // The pairs of the best path that ends with residue i at position k.
    void walk(Domain& domain, std::size_t i, std::size_t k) const {
        while (i > 0) {
            domain.pairs.emplace_back(static_cast<std::uint32_t>(k - 1), static_cast<std::uint32_t>(i - 1));
            const int from = choices_[i * width_ + k] & kPairMask;
            if (from == kBegin) break;
            --i;
            --k;
            if (from == kFromInsertion) {
                while (choices_[i * width_ + k] & kInsertionAgain) --i;
                --i;
            } else if (from == kFromDeletion) {
                while (choices_[i * width_ + k] & kDeletionAgain) --k;
                --k;
            }
        }
        std::reverse(domain.pairs.begin(), domain.pairs.end());
    }

    std::ptrdiff_t offset(std::size_t i) const { return static_cast<std::ptrdiff_t>(i * width_); }

    const Model& model_;
    const std::size_t width_;
    std::vector<double> possible_;  // [kTransitions][model_.length] 0, or kImpossible where the probability is 0
    Flanks flanks_{};
    Residues residues_{};
    // The memory is that of the largest envelope so far: new pages would cost as much as the values in them.
    std::vector<double> match_, insertion_;  // [length + 1][width_]
    std::vector<std::uint8_t> choices_;      // likewise
    std::vector<Flank> outside_;             // by residue, from 1 on
};

// The envelopes of a region: itself, or parts around the domains of the most probable path.
Segments envelopes_of(const Model& model, const Flanks& flanks, const Residues& residues, const Regions& regions,
                      std::size_t first, std::size_t last) {
    if (!regions.has_several(first, last)) return {{first, last}};
    const Segments domains = Parser(model).parse({residues.codes + first, last - first}, flanks);
    Segments found;
    std::size_t start = first;
    for (std::size_t i = 0; i < domains.size(); ++i) {
        const bool is_last = i + 1 == domains.size();
        const std::size_t end = is_last ? last : first + (domains[i].second + domains[i + 1].first) / 2;
        for (const auto& part : regions.found(start, end - start)) found.push_back(part);
        start = end;
    }
    return found;
}

Decoded decoded(const Model& model, const Residues& residues, std::int64_t least, Envelope& envelope) {
    const Flanks flanks = Flanks::of_any_number(residues.length);
    Decoded found;
    const std::vector<Outside> forward = outsides_before(model, flanks, residues, found.total);
    if (!is_at_least(found.total, least)) return found;
    const Regions regions(forward, outsides_behind(model, flanks, residues), flanks, found.total);
    const Flanks of_one = Flanks::of_one(residues.length);
    for (const auto& [first, last] : regions.found(0, residues.length)) {
        for (const auto& [from, to] : envelopes_of(model, flanks, residues, regions, first, last)) {
            Domain domain = envelope.decoded(of_one, {residues.codes + from, to - from}, least);
            domain.first = from;
            domain.last = to;
            for (auto& pair : domain.pairs) pair.second += static_cast<std::uint32_t>(from);
            found.domains.push_back(std::move(domain));
        }
    }
    return found;
}

}  // namespace

std::vector<Decoded> decode(const Model& model, const Subjects& subjects, const std::int64_t* least,
                            const Threads& threads) {
    std::vector<Decoded> found(subjects.n);
    std::vector<Envelope> envelopes(static_cast<std::size_t>(threads.n), Envelope(model));  // one for each worker
    parallel_for(subjects.n, threads, [&](std::size_t i, std::size_t worker) {
        const Residues residues{subjects.residues + subjects.starts[i], subjects.lengths[i]};
        found[i] = decoded(model, residues, least[i], envelopes[worker]);
        threads.observer.done(model.length * subjects.lengths[i]);
    });
    return found;
}

}  // namespace swsearch::domains
