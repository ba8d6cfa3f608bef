// The columns of a subject that the lanes of a strip compute, and the columns of the boundaries that the strip reads
// and writes.
//
// Neighbouring lanes are kLag columns apart, so the cells that the lanes compute in one step form a slanted section of
// the matrix. A complete subject (WholeSubject) begins with padding in all lanes except the first and ends with padding
// in all lanes except the last: every cell is computed, at the cost of a tile depth of additional steps. A part of a
// subject (SlantedPart) has neighbouring parts, which compute the columns before and after it. It is cut along the
// slant at both ends, so no lane is ever idle. The first lane of a strip is one lag behind the last lane of the strip
// above, so all strips together are cut in the same way as a single tile of their total height.
//
// Both classes have the same members and are the ColumnRange of align_strip (strip.cuh).

#pragma once

#include "common/platform.cuh"
#include "search/boundary.cuh"
#include "search/subject.cuh"

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

    // Number of steps of a strip. A strip below reads columns in complete rounds.
    SWS_DEVICE int n_steps(bool has_strip_below) const {
        return (has_strip_below ? static_cast<int>(whole_rounds(length_)) : length_) + Shape::kDepth;
    }

    // Number of columns that the boundary above has, and number of columns to write to the boundary below.
    SWS_DEVICE u32 n_above() const { return whole_rounds(length_); }
    SWS_DEVICE u32 n_below() const { return whole_rounds(length_); }

   private:
    int length_;
};

// A part of the columns: a range of columns of the query's first row and, for every other row, the range shifted along
// the slant.
//
// Boundary columns are counted from step 0 of the strip itself. The lane above is one step ahead: the values that it
// computes in a step belong to column step + 1, and column 0 represents the values before the cut, which are zero.
template <class Shape>
class SlantedPart {
   public:
    static constexpr int kFirstWritten = 1;
    // Columns by which a strip lags behind the strip above: the lag of all of its lanes.
    static constexpr int kStripLag = Shape::kDepth + 1;

    // length: columns from the part's first one to the subject's end, or to a column past all columns that it reads.
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
