// The readers of blocks of FASTA and FASTQ. Lines are found with memchr; letters are encoded by a table, eight at a
// time.

#include "index/records.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace swsearch::index {

namespace {

bool is_blank(std::uint8_t byte) { return byte == ' ' || byte == '\t'; }

// Bytes that no line may contain: NUL, and those that other readers would take for white space.
bool is_forbidden(std::uint8_t byte) {
    return byte == 0 || byte == 0x0B || byte == 0x0C || (byte >= 0x1C && byte <= 0x1F);
}

// Writes the codes of n letters. `to` may lie before `from` in the same text. Returns whether all are letters.
bool encode_letters(const std::uint8_t* from, std::size_t n, const std::uint8_t* encode, std::uint8_t* to) {
    std::uint8_t all = 0;
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        std::array<std::uint8_t, 8> letters;
        std::memcpy(letters.data(), from + i, 8);
        for (std::uint8_t& letter : letters) {
            letter = encode[letter];
            all = static_cast<std::uint8_t>(all | letter);
        }
        std::memcpy(to + i, letters.data(), 8);
    }
    for (; i < n; ++i) {
        to[i] = encode[from[i]];
        all = static_cast<std::uint8_t>(all | to[i]);
    }
    return all < 128;
}

// Finds the ends of consecutive lines, which are LF, CRLF or CR. Each byte is looked at twice at most: a search for LF
// in a text whose lines end in CR would otherwise go to the end of the text for each line.
class LineEnds {
   public:
    explicit LineEnds(const std::uint8_t* end) : end_(end) {}

    // The end of the line that begins at `line`, not before the line of the previous call: the first CR or LF, or the
    // end of the text.
    const std::uint8_t* of(const std::uint8_t* line) {
        if (line_feed_ == nullptr || line_feed_ < line) line_feed_ = first(line, end_, '\n');
        return first(line, line_feed_, '\r');
    }

   private:
    static const std::uint8_t* first(const std::uint8_t* from, const std::uint8_t* end, char byte) {
        const void* const found = std::memchr(from, byte, static_cast<std::size_t>(end - from));
        return found == nullptr ? end : static_cast<const std::uint8_t*>(found);
    }

    const std::uint8_t* end_;
    const std::uint8_t* line_feed_ = nullptr;  // the first one that is not before the current line, or the end
};

// The index of the first byte without a code; n if there is none.
std::size_t first_invalid(const std::uint8_t* letters, std::size_t n, const std::uint8_t* encode) {
    const auto is_invalid = [encode](std::uint8_t byte) { return encode[byte] >= 128; };
    return static_cast<std::size_t>(std::find_if(letters, letters + n, is_invalid) - letters);
}

// Why a record is refused.
struct Refusal {
    Problem problem = Problem::none;
    std::uint64_t residue = 0;
    std::uint8_t byte = 0;
};

// Ends the record whose header is behind those of the other records.
void add(Records& records, std::size_t length) {
    records.lengths.push_back(static_cast<std::uint32_t>(length));
    records.header_ends.push_back(records.headers.size());
    records.n_residues += length;
}

// Moves the header that is behind those of the other records to the refused records.
void refuse(Records& records, const Refusal& refusal) {
    InvalidRecords& refused = records.refused;
    const std::size_t n_headers = records.header_ends.empty() ? 0 : records.header_ends.back();
    refused.numbers.push_back(static_cast<std::uint32_t>(records.lengths.size() + refused.numbers.size()));
    refused.problems.push_back(static_cast<std::uint8_t>(refusal.problem));
    refused.residues.push_back(refusal.residue);
    refused.bytes.push_back(refusal.byte);
    refused.headers.insert(refused.headers.end(), records.headers.begin() + static_cast<std::ptrdiff_t>(n_headers),
                           records.headers.end());
    refused.header_ends.push_back(refused.headers.size());
    records.headers.resize(n_headers);
}

}  // namespace

Records read_fasta(std::uint8_t* text, std::size_t size, const std::uint8_t* encode, bool skips) {
    Records records;
    const Records irregular;
    const std::uint8_t* const end = text + size;
    std::uint8_t* out = text;
    std::uint8_t* record = nullptr;  // where the codes of the current record begin; null before the first record
    Refusal refusal;                 // of the current record
    // Ends the current record. Returns whether the text is regular so far.
    const auto end_record = [&] {
        if (record == nullptr) return true;
        const auto length = static_cast<std::size_t>(out - record);
        if (refusal.problem == Problem::none && length == 0) refusal.problem = Problem::no_residues;
        if (refusal.problem == Problem::none && length > UINT32_MAX) refusal.problem = Problem::too_long;
        if (refusal.problem == Problem::none) {
            add(records, length);
            return true;
        }
        refuse(records, refusal);
        refusal = {};
        out = record;
        return skips;
    };
    LineEnds line_ends(end);
    for (const std::uint8_t* line = text; line < end;) {
        const std::uint8_t* stop = line_ends.of(line);
        const std::uint8_t* const next = stop + 1;
        while (line < stop && is_blank(*line)) ++line;
        while (stop > line && is_blank(stop[-1])) --stop;
        if (line == stop) {
            line = next;
            continue;
        }
        if (*line == '>') {
            if (!end_record()) return irregular;
            record = out;
            const std::uint8_t* const forbidden = std::find_if(line + 1, stop, is_forbidden);
            if (forbidden < stop) {
                if (!skips) return irregular;
                refusal = {Problem::header_byte, 0, *forbidden};
            }
            records.headers.insert(records.headers.end(), line + 1, stop);
        } else {
            // '#' and ';' begin a comment; as letters, they are none of any alphabet.
            if (record == nullptr) return irregular;
            const auto n = static_cast<std::size_t>(stop - line);
            // The codes overwrite the letters, so a letter that must be known is looked for first.
            const std::size_t invalid = skips && refusal.problem == Problem::none ? first_invalid(line, n, encode) : n;
            if (invalid < n)
                refusal = {Problem::letter, static_cast<std::uint64_t>(out - record) + invalid, line[invalid]};
            if (refusal.problem == Problem::none) {
                if (!encode_letters(line, n, encode, out)) return irregular;
                out += n;
            }
        }
        line = next;
    }
    if (!end_record()) return irregular;
    records.is_regular = true;
    return records;
}

Records read_fastq(std::uint8_t* text, std::size_t size, const std::uint8_t* encode, bool skips) {
    struct Line {
        const std::uint8_t* begin;
        const std::uint8_t* end;
        std::size_t size() const { return static_cast<std::size_t>(end - begin); }
    };
    Records records;
    const Records irregular;
    const std::uint8_t* at = text;
    const std::uint8_t* const end = text + size;
    std::uint8_t* out = text;
    const auto next_line = [&] {
        const void* const found = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
        const std::uint8_t* const stop = found == nullptr ? end : static_cast<const std::uint8_t*>(found);
        const Line line{at, stop > at && stop[-1] == '\r' ? stop - 1 : stop};
        at = found == nullptr ? end : stop + 1;
        return line;
    };
    const auto is_ascii = [](const Line& line) {
        return std::all_of(line.begin, line.end, [](std::uint8_t byte) { return byte < 128; });
    };
    while (at < end) {
        const Line header = next_line(), letters = next_line(), plus = next_line(), qualities = next_line();
        const bool is_empty = skips && letters.size() == 0 && qualities.size() == 0;
        if (header.size() == 0 || plus.size() == 0) return irregular;
        if (!is_empty && (letters.size() == 0 || qualities.size() == 0)) return irregular;
        const bool repeats_header =
            plus.size() == header.size() && std::equal(plus.begin + 1, plus.end, header.begin + 1);
        if (*header.begin != '@' || !is_ascii(header) || *plus.begin != '+' || (plus.size() > 1 && !repeats_header) ||
            !is_ascii(qualities) || letters.size() != qualities.size() || letters.size() > UINT32_MAX) {
            return irregular;
        }
        const std::uint8_t* stop = header.end;
        while (is_blank(stop[-1]) || is_forbidden(stop[-1]) || stop[-1] == '\r') --stop;
        records.headers.insert(records.headers.end(), header.begin + 1, stop);  // before the codes overwrite it
        const std::size_t invalid = skips ? first_invalid(letters.begin, letters.size(), encode) : letters.size();
        if (is_empty) {
            refuse(records, {Problem::no_residues, 0, 0});
        } else if (invalid < letters.size()) {
            refuse(records, {Problem::letter, invalid, letters.begin[invalid]});
        } else {
            if (!encode_letters(letters.begin, letters.size(), encode, out)) return irregular;
            out += letters.size();
            add(records, letters.size());
        }
    }
    records.is_regular = true;
    return records;
}

std::size_t whole_fasta(const std::uint8_t* text, std::size_t size) {
    for (std::size_t i = size; i-- > 1;) {
        if (text[i] == '>' && (text[i - 1] == '\n' || text[i - 1] == '\r')) return i;
    }
    return 0;
}

std::size_t whole_fastq(const std::uint8_t* text, std::size_t size) {
    if (size == 0) return 0;  // the text may be null
    std::size_t whole = 0;
    const std::uint8_t* line = text;
    for (int n = 1;; ++n) {
        const void* const found = std::memchr(line, '\n', size - static_cast<std::size_t>(line - text));
        if (found == nullptr) return whole;
        line = static_cast<const std::uint8_t*>(found) + 1;
        if (n % 4 == 0) whole = static_cast<std::size_t>(line - text);
    }
}

bool residues_hold(const std::uint8_t* residues, std::size_t size, const std::uint64_t* starts,
                   const std::uint32_t* lengths, std::size_t n, const std::uint8_t* is_letter, std::uint8_t fill) {
    bool holds = true;
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t end = starts[i] + lengths[i], next = i + 1 < n ? starts[i + 1] : size;
        for (std::size_t at = starts[i]; at < end; ++at) holds &= is_letter[residues[at]] != 0;
        for (std::size_t at = end; at < next; ++at) holds &= residues[at] == fill;
    }
    return holds;
}

std::vector<std::uint8_t> write_fasta(const std::uint8_t* headers, const std::uint64_t* header_ends,
                                      const std::uint8_t* codes, const std::uint32_t* lengths, std::size_t n,
                                      const std::uint8_t* decode, std::size_t width) {
    std::size_t size = 0;
    const auto line_of = [&](std::size_t i) { return width == 0 ? std::size_t{lengths[i]} : width; };
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t n_lines = lengths[i] == 0 ? 1 : (lengths[i] + line_of(i) - 1) / line_of(i);
        size += 2 + (header_ends[i] - (i == 0 ? 0 : header_ends[i - 1])) + lengths[i] + n_lines;
    }
    std::vector<std::uint8_t> text(size);
    std::uint8_t* to = text.data();
    for (std::size_t i = 0; i < n; ++i) {
        *to++ = '>';
        to = std::copy(headers + (i == 0 ? 0 : header_ends[i - 1]), headers + header_ends[i], to);
        *to++ = '\n';
        std::size_t left = lengths[i];
        do {
            const std::size_t n_letters = std::min(left, line_of(i));
            to = std::transform(codes, codes + n_letters, to, [decode](std::uint8_t code) { return decode[code]; });
            *to++ = '\n';
            codes += n_letters;
            left -= n_letters;
        } while (left > 0);
    }
    return text;
}

}  // namespace swsearch::index
