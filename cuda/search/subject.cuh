// The residues of a subject as a lane reads them: in rounds of four columns, delayed by the lane's lag; and the columns
// that the lanes of a strip compute.
//
// The packed database is read as it is stored: one byte per residue, four residues per 32-bit word, lowest byte first.
// Every subject begins at a multiple of 16 bytes and is padded with code 31 up to the next subject. Bit 5 of a byte
// is the soft mask. The column of a residue in the staged profile is (byte + 1) & 31, which drops the soft mask and
// makes the padding column 0; an alphabet of n letters therefore needs n + 1 columns.

#pragma once

#include "common/platform.cuh"

namespace swsearch {

constexpr u32 kPadding = 0x1F1F1F1Fu;
constexpr int kColumnsPerRound = 4;

// Columns of a subject, including the padding of its last round.
SWS_DEVICE u32 whole_rounds(int columns) {
    return static_cast<u32>(columns + kColumnsPerRound - 1) / kColumnsPerRound * kColumnsPerRound;
}

class ResidueStream {
   public:
    // residues: the subject's first word. length: residues. lag: columns by which the lane is delayed, at least 0.
    SWS_DEVICE ResidueStream(const u32* residues, int length, int lag)
        : residues_(residues),
          n_words_((length + 3) / 4),
          index_(-((lag + 3) / 4)),
          selector_(0x3210u + 0x1111u * static_cast<u32>((4 - lag % 4) % 4)) {
        current_ = word(index_);
        next_ = word(index_ + 1);
    }

    // Profile columns of the lane's next four residues, lowest byte first. Words are loaded one call ahead of their
    // use.
    SWS_DEVICE u32 next() {
        const u32 ahead = word(index_ + 2);
        const u32 codes = permute_bytes(current_, next_, selector_);
        current_ = next_;
        next_ = ahead;
        ++index_;
        return (codes + 0x01010101u) & kPadding;
    }

   private:
    // A word of the subject; padding before its first word and after its last.
    SWS_DEVICE u32 word(int index) const {
        u32 word = kPadding;
        load_over(static_cast<u32>(index) < static_cast<u32>(n_words_), words_from(residues_, index), word);
        return word;
    }

    const u32* residues_;
    int n_words_;
    int index_;
    u32 selector_;
    u32 current_;
    u32 next_;
};

// The columns of a subject that the lanes of a strip compute, and those of the boundaries that it reads and writes.
//
// Neighbouring lanes are kLag columns apart, so the cells that the lanes compute in one step form a slanted section of
// the matrix. A subject begins with padding in all lanes except the first and ends with padding in all lanes except the
// last: every cell is computed, at the cost of a tile depth of additional steps.
template <class Shape>
class SubjectColumns {
   public:
    // Boundary column that the last lane of a strip writes in step 0.
    static constexpr int kFirstWritten = -Shape::kDepth;

    SWS_DEVICE explicit SubjectColumns(int length) : length_(length) {}

    SWS_DEVICE ResidueStream residues(const u32* first, int lane) const {
        return ResidueStream(first, length_, Shape::kLag * lane);
    }

    // Number of steps of a strip. A strip below reads columns in complete rounds.
    SWS_DEVICE int n_steps(bool has_strip_below) const {
        return (has_strip_below ? static_cast<int>(whole_rounds(length_)) : length_) + Shape::kDepth;
    }

    // Number of columns of the boundaries above and below.
    SWS_DEVICE u32 n_boundary() const { return whole_rounds(length_); }

   private:
    int length_;
};

}  // namespace swsearch
