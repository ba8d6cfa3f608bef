// A subject's residues as a lane meets them: four columns at a time, shifted by the lane's lag.
//
// The packed database is read as it is: one byte a residue, four residues a 32-bit word, lowest byte first, every subject at
// a multiple of 16 bytes and filled with code 31 to the next one. Bit 5 of a byte is the soft mask. A residue's column in
// the staged profile is (byte + 1) & 31, which drops the soft mask and makes the padding column 0, so that an alphabet
// of n letters needs n + 1 columns.

#pragma once

#include "swsearch/platform.cuh"

namespace swsearch {

constexpr u32 kPadding = 0x1F1F1F1Fu;

class ResidueStream {
   public:
    // residues: the subject's first word; length in residues; lag: columns that the lane is behind, at least 0; ahead: words
    // from the first one to where a lane that is not behind begins.
    SWS_DEVICE ResidueStream(const u32* residues, int length, int lag, int ahead = 0)
        : residues_(residues),
          n_words_((length + 3) / 4),
          place_(ahead - (lag + 3) / 4),
          selector_(0x3210u + 0x1111u * static_cast<u32>((4 - lag % 4) % 4)) {
        current_ = word(place_);
        following_ = word(place_ + 1);
    }

    // Profile columns of the lane's next four residues, lowest byte first. Words are asked for a call ahead of their use.
    SWS_DEVICE u32 next() {
        const u32 ahead = word(place_ + 2);
        const u32 codes = permute_bytes(current_, following_, selector_);
        current_ = following_;
        following_ = ahead;
        ++place_;
        return (codes + 0x01010101u) & kPadding;
    }

   private:
    // Padding before the subject's first word and after its last.
    SWS_DEVICE u32 word(int place) const {
        return load_if(static_cast<u32>(place) < static_cast<u32>(n_words_), words_from(residues_, place), kPadding);
    }

    const u32* residues_;
    int n_words_;
    int place_;
    u32 selector_;
    u32 current_;
    u32 following_;
};

}  // namespace swsearch
