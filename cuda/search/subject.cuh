// The residues of a subject as a lane reads them: four columns at a time, delayed by the lane's lag.
//
// The packed database is read as it is stored: one byte per residue, four residues per 32-bit word, lowest byte first.
// Every subject begins at a multiple of 16 bytes and is padded with code 31 up to the next subject. Bit 5 of a byte
// is the soft mask. The column of a residue in the staged profile is (byte + 1) & 31, which drops the soft mask and
// makes the padding column 0; an alphabet of n letters therefore needs n + 1 columns.

#pragma once

#include "common/platform.cuh"

namespace swsearch {

constexpr u32 kPadding = 0x1F1F1F1Fu;

class ResidueStream {
   public:
    // residues: the subject's first word. length: residues. lag: columns by which the lane is delayed, at least 0.
    // ahead: index of the word at which a lane without lag begins.
    SWS_DEVICE ResidueStream(const u32* residues, int length, int lag, int ahead = 0)
        : residues_(residues),
          n_words_((length + 3) / 4),
          index_(ahead - (lag + 3) / 4),
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
        return load_if(static_cast<u32>(index) < static_cast<u32>(n_words_), words_from(residues_, index), kPadding);
    }

    const u32* residues_;
    int n_words_;
    int index_;
    u32 selector_;
    u32 current_;
    u32 next_;
};

}  // namespace swsearch
