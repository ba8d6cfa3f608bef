// Substitution scores for the cells of a diamond (diamond.cuh): from a table in shared memory, or by comparing
// letters.
//
// Both classes return to a lane the scores of its rows at its next column, in the order in which its cells are stored
// in words (cells.cuh). The low half of a narrow word is at column j and the high half at column j - 1, so the scores
// of a column are stored for one more step. The inputs are the query's letters (QueryLetters) and the subject's
// letters.

#pragma once

#include "common/platform.cuh"
#include "pairs/letter_window.cuh"

namespace swsearch {

// The query as the strips read it, padded to complete strips.
struct QueryLetters {
    const unsigned char* classes;   // table: the line of each row, 0 for padding
    const signed char* lines;       // table: [line][subject letter], 32 scores per line; line 0 is that of padding
    const unsigned short* letters;  // compared: the letter of each row
    int n_columns;                  // table: number of columns of a line that are in use
    int match;                      // compared: score of equal letters
    int mismatch;                   // compared: score of different letters
};

constexpr int kLineColumns = 32;

// Largest number of 32-bit words that a letter window takes in shared memory; the table follows it.
constexpr int kWindowWords = 256;

// 8-bit scores, staged in shared memory for one strip as [subject letter][lane][row]. A lane reads the scores of all
// its rows with one load, and reads only scores that it has written itself. With narrow cells, a word contains the
// scores of two rows of low halves and of the two rows of high halves in the same cell words; with wide cells, those of
// four rows.
template <class Cells, int kWords>
class TableScores {
   public:
    static constexpr int kRows = kWords * Cells::kRowsPerWord;
    static constexpr int kScoreWords = (kRows + 3) / 4;
    static_assert(kScoreWords == 1 || kScoreWords == 2 || kScoreWords == 4, "a lane reads its rows in one load");

    // first: index of the strip's first query letter. columns: length of the subject. start: first column of lane 0, a
    // multiple of 32.
    SWS_DEVICE TableScores(u32* shared, const QueryLetters& query, u64 first, const unsigned char* subject, int columns,
                           int start, int lane)
        : table_(shared + kWindowWords + lane * kScoreWords),
          window_(shared, subject, columns, 0, line_column, start, lane) {
        const unsigned char* const rows = query.classes + first + lane * kRows;
        for (int letter = 0; letter < query.n_columns; ++letter) {
#pragma unroll
            for (int i = 0; i < kScoreWords; ++i) {
                u32 word = 0;
#pragma unroll
                for (int byte = 0; byte < 4; ++byte) {
                    const int row = row_of(i, byte);
                    if (row < kRows) {
                        const signed char score = query.lines[rows[row] * kLineColumns + letter];
                        word |= (static_cast<u32>(score) & 0xFFu) << (8 * byte);
                    }
                }
                table_[letter * kWarpSize * kScoreWords + i] = word;
            }
        }
        load(window_.letter_before());
    }

    // Adds the letters of 32 more columns to the window.
    SWS_DEVICE void next_group() { window_.next_group(line_column); }

    // Advances to the lane's next four columns.
    SWS_DEVICE void next_four() { window_.next_four(four_); }

    // Advances to column `column` of the four.
    SWS_DEVICE void next(int column) {
#pragma unroll
        for (int i = 0; i < kScoreWords; ++i) {
            previous_[i] = current_[i];
        }
        load(permute_bytes(four_[0], 0, 0x4440u + static_cast<u32>(column)));
    }

    // The scores of word k.
    SWS_DEVICE typename Cells::Word score(int k) const {
        if constexpr (Cells::kRowsPerWord == 2) {
            return permute_bytes(current_[k / 2], previous_[k / 2], k % 2 == 0 ? 0xE680u : 0xF791u);
        } else {
            const u32 byte = static_cast<u32>(k % 4);
            return static_cast<int>(permute_bytes(current_[k / 4], 0, 0x8880u + 0x1111u * byte));
        }
    }

   private:
    // Loads the scores of the lane's rows in a column of the lines.
    SWS_DEVICE void load(u32 code) {
        const u32* const entry = table_ + code * (kWarpSize * kScoreWords);
        if constexpr (kScoreWords == 4) {
            const uint4 four = *reinterpret_cast<const uint4*>(entry);
            current_[0] = four.x;
            current_[1] = four.y;
            current_[2] = four.z;
            current_[3] = four.w;
        } else if constexpr (kScoreWords == 2) {
            const uint2 two = *reinterpret_cast<const uint2*>(entry);
            current_[0] = two.x;
            current_[1] = two.y;
        } else {
            current_[0] = *entry;
        }
    }

    // The column of a letter in the lines; the soft mask is dropped.
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
    u32 current_[kScoreWords] = {};
    u32 previous_[kScoreWords] = {};
};

// Scores of 16-bit letters by comparison, one score for equal and one for different letters. They are used for texts,
// and for scores that exceed 8 bits.
template <class Cells, int kWords>
class ComparedScores {
   public:
    static constexpr int kRows = kWords * Cells::kRowsPerWord;
    static constexpr u32 kFill = 0xFFFEu;  // equal to no letter of the query

    SWS_DEVICE ComparedScores(u32* shared, const QueryLetters& query, u64 first, const unsigned char* subject,
                              int columns, int start, int lane)
        : window_(shared, reinterpret_cast<const unsigned short*>(subject), columns, kFill, unchanged, start, lane),
          match_(Cells::both(query.match)),
          mismatch_delta_(query.mismatch - query.match) {
        const unsigned short* const rows = query.letters + first + lane * kRows;
#pragma unroll
        for (int k = 0; k < kWords; ++k) {
            rows_[k] = Cells::pair(rows[k], Cells::kRowsPerWord == 2 ? rows[kWords + k] : 0);
        }
        previous_letter_ = window_.letter_before();
    }

    SWS_DEVICE void next_group() { window_.next_group(unchanged); }

    SWS_DEVICE void next_four() { window_.next_four(four_); }

    SWS_DEVICE void next(int column) {
        const u32 letter = (four_[column / 2] >> (16 * (column % 2))) & 0xFFFFu;
        letters_ = Cells::kRowsPerWord == 2 ? (letter | (previous_letter_ << 16)) : letter;
        previous_letter_ = letter;
    }

    SWS_DEVICE typename Cells::Word score(int k) const {
        if constexpr (Cells::kRowsPerWord == 2) {
            // 1 in each half whose letters differ. The product with a 16-bit number does not carry between the halves.
            const u32 differ = __vminu2(rows_[k] ^ letters_, 0x00010001u);
            return Cells::add(match_, differ * (static_cast<u32>(mismatch_delta_) & 0xFFFFu));
        } else {
            return match_ + (static_cast<u32>(rows_[k]) == letters_ ? 0 : mismatch_delta_);
        }
    }

   private:
    static SWS_DEVICE u32 unchanged(u32 letter) { return letter; }

    using Window = LetterWindow<unsigned short, Cells::kLag>;
    static_assert(Window::kSharedWords <= kWindowWords, "the window has room");

    Window window_;
    typename Cells::Word match_;
    int mismatch_delta_;
    typename Cells::Word rows_[kWords];
    typename Window::Four four_ = {};
    u32 letters_ = 0;
    u32 previous_letter_;
};

}  // namespace swsearch
