// The columns of a subject that the lanes of a strip compute, and where the boundaries of the strips above and below
// meet them.
//
// Neighbouring lanes are kLag columns apart, so the cells that the lanes compute in one step form a slanted cut
// through the matrix. A whole subject begins with padding in all lanes but the first and ends with padding in all
// lanes but the last: every cell is computed, at the cost of a tile depth of additional steps. A part of a subject
// has neighbouring parts that compute the columns beside it. It is cut along the slant at both ends, so that no lane
// is ever idle. The first lane of a strip is one lag behind the last lane of the strip above, so all strips together
// are cut as one tall tile would be.
//
// Both classes have the same members and are the ColumnRange of align_strip (kernels/strip.cuh).

#pragma once

#include "swsearch/boundary.cuh"
#include "swsearch/platform.cuh"
#include "swsearch/subject.cuh"

namespace swsearch {

// All columns of a subject.
template <class Shape>
class WholeSubject {
   public:
    // Boundary column that the last lane of a strip writes in step 0.
    static constexpr int kFirstWritten = -Shape::kDepth;

    SWS_DEVICE explicit WholeSubject(int length) : length_(length) {}

    SWS_DEVICE ResidueStream residues(const u32* first, int lane) const {
        return ResidueStream(first, length_, Shape::kLag * lane);
    }

    // Steps of a strip. A strip below reads columns in whole rounds.
    SWS_DEVICE int n_steps(bool has_strip_below) const {
        return (has_strip_below ? static_cast<int>(whole_rounds(length_)) : length_) + Shape::kDepth;
    }

    // Columns of the boundary above, which exist, and of the boundary below, which are to be written.
    SWS_DEVICE u32 n_above() const { return whole_rounds(length_); }
    SWS_DEVICE u32 n_below() const { return whole_rounds(length_); }

   private:
    int length_;
};

// A part of the columns: a range of columns of the query's first row, and of every other row the columns that lie along
// the slant below it.
//
// Boundary columns are counted from step 0 of the strip itself. The lane above is a step ahead: what it computes in a
// step belongs to column step + 1, and column 0 stands for what comes before the cut, which is zero.
template <class Shape>
class SlantedPart {
   public:
    static constexpr int kFirstWritten = 1;
    // Columns by which a strip is behind the strip above: the lag of all of its lanes.
    static constexpr int kStripLag = Shape::kDepth + 1;

    // length: columns from the part's first one to the subject's end, or to a column past all that the part reads.
    // before: the subject's columns before the part's first one, a multiple of 4.
    // n_steps: columns of the part, a multiple of 4; if the part ends with the subject, enough for all lanes of all
    // strips to pass its end.
    // max_steps: largest number of steps to which the part may be extended while it is computed.
    SWS_DEVICE SlantedPart(int length, int before, int n_steps, int max_steps, int strip)
        : length_(length),
          // No lane of the strip reads columns further back than this.
          before_(before < (strip + 1) * kStripLag ? before : (strip + 1) * kStripLag),
          strip_lag_(strip * kStripLag),
          n_steps_(n_steps),
          max_steps_(max_steps) {}

    SWS_DEVICE ResidueStream residues(const u32* first, int lane) const {
        return ResidueStream(words_from(first, -before_ / 4), length_ + before_, Shape::kLag * lane,
                             (before_ - strip_lag_) / 4);
    }

    SWS_DEVICE int n_steps(bool) const { return n_steps_; }
    SWS_DEVICE u32 n_above() const { return static_cast<u32>(max_steps_); }
    SWS_DEVICE u32 n_below() const { return static_cast<u32>(max_steps_ + 1); }

   private:
    static_assert(kStripLag % kColumnsPerRound == 0, "strips are whole rounds apart");

    int length_;
    int before_;
    int strip_lag_;
    int n_steps_;
    int max_steps_;
};

}  // namespace swsearch
