// Where the scores of a diamond's cells come from: a table in shared memory, or letters that are compared.
//
// Both give a lane the scores of its rows at its next column, a word at a time as its cells lie in words (cells.cuh): for
// narrow cells the low half at column j and the high half at column j - 1, so what belongs to a column is kept for one
// step.

#pragma once

#include "swsearch/letter_window.cuh"
#include "swsearch/platform.cuh"

namespace swsearch {

// The query as strips read it; rows past its end are fill.
struct QueryLetters {
    const unsigned char* classes;  // table: the line of each row
    const signed char* lines;      // table: [line][32] scores of a line against each subject letter; the first is padding's
    const unsigned short* letters;  // compared: the letter of each row
    int n_columns;                 // table: columns of a line that are in use
    int match;
    int mismatch;
};

constexpr int kLineColumns = 32;

// 32-bit words of shared memory that a window takes at most; a table lies behind it.
constexpr int kWindowWords = 256;

// 8-bit scores, staged in shared memory for a strip: [subject letter][lane][row]. A lane reads all of its rows at once, and
// only what it has written itself. The words hold, for narrow cells, two rows of the low halves and the two of the high
// halves that share words with them; for wide cells, four rows.
template <class Cells, int kWords>
class TableScores {
   public:
    static constexpr int kRows = kWords * Cells::kRowsPerWord;
    static constexpr int kHeld = (kRows + 3) / 4;
    static_assert(kHeld == 1 || kHeld == 2 || kHeld == 4, "a lane reads its rows in one load");

    // first: place of the strip's first query letter. start: lane 0's first column, a multiple of 32.
    SWS_DEVICE TableScores(u32* shared, const QueryLetters& query, u64 first, const unsigned char* subject, int columns,
                           int start, int lane)
        : table_(shared + kWindowWords + lane * kHeld), window_(shared, subject, columns, 0, line_column, start, lane) {
        const unsigned char* const rows = query.classes + first + lane * kRows;
        for (int letter = 0; letter < query.n_columns; ++letter) {
#pragma unroll
            for (int i = 0; i < kHeld; ++i) {
                u32 word = 0;
#pragma unroll
                for (int byte = 0; byte < 4; ++byte) {
                    const int row = row_of(i, byte);
                    if (row < kRows) {
                        const signed char score = query.lines[rows[row] * kLineColumns + letter];
                        word |= (static_cast<u32>(score) & 0xFFu) << (8 * byte);
                    }
                }
                table_[letter * kWarpSize * kHeld + i] = word;
            }
        }
        load(window_.letter_before());
    }

    // Makes the letters of 32 more columns readable.
    SWS_DEVICE void next_group() { window_.next_group(line_column); }

    // Goes on to the lane's next four columns.
    SWS_DEVICE void next_four() { window_.next_four(four_); }

    // Goes on to column `column` of the four.
    SWS_DEVICE void next(int column) {
#pragma unroll
        for (int i = 0; i < kHeld; ++i) {
            before_[i] = now_[i];
        }
        load(permute_bytes(four_[0], 0, 0x4440u + static_cast<u32>(column)));
    }

    // The scores of word k.
    SWS_DEVICE typename Cells::Word score(int k) const {
        if constexpr (Cells::kRowsPerWord == 2) {
            return permute_bytes(now_[k / 2], before_[k / 2], k % 2 == 0 ? 0xE680u : 0xF791u);
        } else {
            const u32 byte = static_cast<u32>(k % 4);
            return static_cast<int>(permute_bytes(now_[k / 4], 0, 0x8880u + 0x1111u * byte));
        }
    }

   private:
    // Scores of the lane's rows against a column of the lines.
    SWS_DEVICE void load(u32 code) {
        const u32* const from = table_ + code * (kWarpSize * kHeld);
        if constexpr (kHeld == 4) {
            const uint4 four = *reinterpret_cast<const uint4*>(from);
            now_[0] = four.x;
            now_[1] = four.y;
            now_[2] = four.z;
            now_[3] = four.w;
        } else if constexpr (kHeld == 2) {
            const uint2 two = *reinterpret_cast<const uint2*>(from);
            now_[0] = two.x;
            now_[1] = two.y;
        } else {
            now_[0] = *from;
        }
    }

    // A letter's column in the lines, whatever its soft mask.
    static SWS_DEVICE u32 line_column(u32 letter) { return (letter + 1) & 31u; }

    static SWS_CONSTANT int row_of(int word, int byte) {
        if (Cells::kRowsPerWord == 2) {
            return 2 * word + byte % 2 + (byte / 2) * kWords;
        }
        return 4 * word + byte;
    }

    using Window = LetterWindow<unsigned char, Cells::kLag>;
    static_assert(Window::kSharedWords <= kWindowWords, "the window lies before the table");

    u32* table_;
    Window window_;
    typename Window::Four four_ = {};
    u32 now_[kHeld] = {};
    u32 before_[kHeld] = {};
};

// 16-bit letters, of which any two are equal or not: texts, and scores beyond 8 bits.
template <class Cells, int kWords>
class ComparedScores {
   public:
    static constexpr int kRows = kWords * Cells::kRowsPerWord;
    static constexpr u32 kFill = 0xFFFEu;  // equal to no letter of the query

    SWS_DEVICE ComparedScores(u32* shared, const QueryLetters& query, u64 first, const unsigned char* subject, int columns,
                              int start, int lane)
        : window_(shared, reinterpret_cast<const unsigned short*>(subject), columns, kFill, as_it_is, start, lane),
          match_(Cells::both(query.match)),
          less_(query.mismatch - query.match) {
        const unsigned short* const rows = query.letters + first + lane * kRows;
#pragma unroll
        for (int k = 0; k < kWords; ++k) {
            rows_[k] = Cells::pair(rows[k], Cells::kRowsPerWord == 2 ? rows[kWords + k] : 0);
        }
        last_ = window_.letter_before();
    }

    SWS_DEVICE void next_group() { window_.next_group(as_it_is); }

    SWS_DEVICE void next_four() { window_.next_four(four_); }

    SWS_DEVICE void next(int column) {
        const u32 letter = (four_[column / 2] >> (16 * (column % 2))) & 0xFFFFu;
        letters_ = Cells::kRowsPerWord == 2 ? (letter | (last_ << 16)) : letter;
        last_ = letter;
    }

    SWS_DEVICE typename Cells::Word score(int k) const {
        if constexpr (Cells::kRowsPerWord == 2) {
            // 1 in the halves whose letters differ; times the low 16 bits of a number no half carries into the other.
            const u32 differ = __vminu2(rows_[k] ^ letters_, 0x00010001u);
            return Cells::add(match_, differ * (static_cast<u32>(less_) & 0xFFFFu));
        } else {
            return match_ + (static_cast<u32>(rows_[k]) == letters_ ? 0 : less_);
        }
    }

   private:
    static SWS_DEVICE u32 as_it_is(u32 letter) { return letter; }

    using Window = LetterWindow<unsigned short, Cells::kLag>;
    static_assert(Window::kSharedWords <= kWindowWords, "the window has room");

    Window window_;
    typename Cells::Word match_;
    int less_;
    typename Cells::Word rows_[kWords];
    typename Window::Four four_ = {};
    u32 letters_ = 0;
    u32 last_;
};

}  // namespace swsearch
