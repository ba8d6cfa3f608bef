// Which columns of a subject the lanes of a strip go through, and where the strips above and below meet it.
//
// Lanes lie apart, each kLag columns behind the one above, so what they hold after a step is a slanted cut through the
// matrix. A whole subject begins with padding in all lanes but the first and ends with padding in all but the last: every cell
// is met, which costs a tile's depth of steps. A part of a subject has neighbours that meet what lies beside it. It is cut
// along the slant, at both ends, so that no lane waits for another. A strip's first lane lies one lag behind the last lane of
// the strip above, so that all strips together are cut as a single tall tile would be.

#pragma once

#include "swsearch/boundary.cuh"
#include "swsearch/platform.cuh"
#include "swsearch/subject.cuh"

namespace swsearch {

// From the first column to the last.
template <class Shape>
class WholeSubject {
   public:
    // The boundary's column that a strip's last lane leaves in step 0.
    static constexpr int kFirstLeft = -Shape::kDepth;

    SWS_DEVICE explicit WholeSubject(int length) : length_(length) {}

    SWS_DEVICE ResidueStream residues(const u32* first, int lane) const {
        return ResidueStream(first, length_, Shape::kLag * lane);
    }

    // Steps of a strip; `writes`: there is a strip below, which reads columns in whole rounds.
    SWS_DEVICE int n_steps(bool writes) const {
        return (writes ? static_cast<int>(whole_rounds(length_)) : length_) + Shape::kDepth;
    }

    // Columns of the boundary above that there are, and of the one below that are wanted.
    SWS_DEVICE u32 n_above() const { return whole_rounds(length_); }
    SWS_DEVICE u32 n_below() const { return whole_rounds(length_); }

   private:
    int length_;
};

// Some columns: those of the query's first row, and of all others the ones along the slant.
//
// A column of the boundary is counted from the strip's own step 0, and the lane above is a step ahead: what it makes in
// a step is column step + 1, and column 0 is what came before the cut, zero.
template <class Shape>
class SlantedPart {
   public:
    static constexpr int kFirstLeft = 1;
    // Columns that a strip is behind the one above: a lane more than it has.
    static constexpr int kBehind = Shape::kDepth + 1;

    // length: columns to the subject's end or further than the part goes; before: the subject's columns before the part's first
    // one, a multiple of 4; n_steps: columns of the part, a multiple of 4, or so many that all lanes of all strips come to the
    // subject's end; most_steps: where it may be made longer, how long.
    SWS_DEVICE SlantedPart(int length, int before, int n_steps, int most_steps, int strip)
        : length_(length),
          // No lane of the strip looks further back than this.
          before_(before < (strip + 1) * kBehind ? before : (strip + 1) * kBehind),
          behind_(strip * kBehind),
          n_steps_(n_steps),
          most_steps_(most_steps) {}

    SWS_DEVICE ResidueStream residues(const u32* first, int lane) const {
        return ResidueStream(words_from(first, -before_ / 4), length_ + before_, Shape::kLag * lane, (before_ - behind_) / 4);
    }

    SWS_DEVICE int n_steps(bool) const { return n_steps_; }
    SWS_DEVICE u32 n_above() const { return static_cast<u32>(most_steps_); }
    SWS_DEVICE u32 n_below() const { return static_cast<u32>(most_steps_ + 1); }

   private:
    static_assert(kBehind % kColumnsPerRound == 0, "strips are whole rounds apart");

    int length_;
    int before_;
    int behind_;
    int n_steps_;
    int most_steps_;
};

}  // namespace swsearch
