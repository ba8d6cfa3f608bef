// A fuzz target for simd/index: bytes become a text of FASTA or FASTQ, which is read as a whole and in blocks, sorted by
// length through runs, and searched for repeated identifiers. Every step is compared with plain code for the same text.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "fuzz_bytes.hpp"
#include "index/identifiers.hpp"
#include "index/records.hpp"
#include "index/runs.hpp"
#include "plain_gotoh.hpp"

namespace {

using namespace swsearch;
using Text = std::vector<std::uint8_t>;

template <class T>
View<T> view(std::vector<std::remove_const_t<T>>& values) {
    return {values.data(), values.size(), 1};
}

// Letters A to D have the codes 0 to 3; the code of every other byte is 255.
Text encode_table() {
    Text table(256, 255);
    for (std::uint8_t i = 0; i < 4; ++i) table['A' + i] = i;
    return table;
}

struct Plain {
    bool is_regular = true;
    std::vector<std::string> headers, sequences;
    bool begins_with_header = true;
    std::vector<bool> is_refused;  // of each record, whether a reader that skips refuses it
};

// FASTA line by line; the text is short.
Plain plain_fasta(const Text& text) {
    Plain plain;
    std::string line;
    const auto end_line = [&] {
        const std::size_t first = line.find_first_not_of(" \t"), last = line.find_last_not_of(" \t");
        const std::string content = first == std::string::npos ? "" : line.substr(first, last - first + 1);
        line.clear();
        if (content.empty()) return;
        if (content[0] == '>') {
            const std::string forbidden("\0\x0B\x0C\x1C\x1D\x1E\x1F", 7);
            plain.is_refused.push_back(content.find_first_of(forbidden) != std::string::npos);
            plain.headers.push_back(content.substr(1));
            plain.sequences.emplace_back();
        } else if (plain.sequences.empty()) {
            plain.begins_with_header = false;
        } else if (content.find_first_not_of("ABCD") != std::string::npos) {
            plain.is_refused.back() = true;
        } else {
            plain.sequences.back() += content;
        }
    };
    for (const std::uint8_t byte : text) {
        if (byte == '\n' || byte == '\r') {
            end_line();
        } else {
            line += static_cast<char>(byte);
        }
    }
    end_line();
    for (std::size_t i = 0; i < plain.sequences.size(); ++i) {
        if (plain.sequences[i].empty()) plain.is_refused[i] = true;
    }
    const bool refuses = std::find(plain.is_refused.begin(), plain.is_refused.end(), true) != plain.is_refused.end();
    plain.is_regular = plain.begins_with_header && !refuses;
    return plain;
}

Plain plain_of(const Text& text, const index::Records& records) {
    Plain plain;
    plain.is_regular = records.is_regular;
    std::size_t begin = 0, header = 0;
    for (std::size_t i = 0; records.is_regular && i < records.lengths.size(); ++i) {
        std::string letters;
        for (std::uint32_t j = 0; j < records.lengths[i]; ++j) letters += static_cast<char>('A' + text[begin + j]);
        plain.sequences.push_back(letters);
        plain.headers.emplace_back(records.headers.begin() + static_cast<std::ptrdiff_t>(header),
                                   records.headers.begin() + static_cast<std::ptrdiff_t>(records.header_ends[i]));
        begin += records.lengths[i];
        header = records.header_ends[i];
    }
    REQUIRE(!records.is_regular || begin == records.n_residues, "%zu residues", records.n_residues);
    return plain;
}

// Reads with refused records skipped, and compares both kinds of records with those of the plain reader.
void skip_records(Text text, const Text& encode, const Plain& plain) {
    const index::Records records = index::read_fasta(text.data(), text.size(), encode.data(), true);
    REQUIRE(records.is_regular == plain.begins_with_header, "regular with skipping: %d", records.is_regular);
    if (!records.is_regular) return;
    Plain expected;
    std::vector<std::uint32_t> refused;
    for (std::size_t i = 0; i < plain.headers.size(); ++i) {
        if (plain.is_refused[i]) {
            refused.push_back(static_cast<std::uint32_t>(i));
        } else {
            expected.headers.push_back(plain.headers[i]);
            expected.sequences.push_back(plain.sequences[i]);
        }
    }
    const Plain found = plain_of(text, records);
    REQUIRE(found.headers == expected.headers && found.sequences == expected.sequences, "other records are kept");
    REQUIRE(records.refused.numbers == refused, "other records are refused");
    std::size_t begin = 0;
    for (std::size_t i = 0; i < refused.size(); ++i) {
        const auto end = static_cast<std::size_t>(records.refused.header_ends[i]);
        const std::string header(records.refused.headers.begin() + static_cast<std::ptrdiff_t>(begin),
                                 records.refused.headers.begin() + static_cast<std::ptrdiff_t>(end));
        REQUIRE(header == plain.headers[refused[i]], "another header of a refused record");
        begin = end;
    }
}

int file() {
    const int fd = memfd_create("fuzz", 0);
    REQUIRE(fd >= 0, "no file");
    return fd;
}

// Sorts the records of two blocks through runs, and compares stored order and positions with a stable sort.
void sort_by_length(const std::vector<std::pair<Text, index::Records>>& blocks, const Plain& plain, Bytes& bytes) {
    const int residues = file(), order = file();
    std::vector<std::uint32_t> lengths, counts, positions;
    std::vector<std::uint64_t> next, stops, residue_at, subject_at;
    std::vector<index::Groups> runs;
    std::uint64_t offset = 0, first = 0;
    for (const auto& [text, records] : blocks) {
        residue_at.push_back(offset);
        subject_at.push_back(first);
        next.push_back(lengths.size());
        runs.push_back(index::write_run(text.data(), records.lengths.data(), records.lengths.size(),
                                        static_cast<std::uint32_t>(first), residues, offset, order));
        lengths.insert(lengths.end(), runs.back().lengths.begin(), runs.back().lengths.end());
        counts.insert(counts.end(), runs.back().counts.begin(), runs.back().counts.end());
        stops.push_back(lengths.size());
        offset += records.n_residues;
        first += records.lengths.size();
    }
    std::map<std::uint32_t, std::uint64_t> totals;
    for (std::size_t g = 0; g < lengths.size(); ++g) totals[lengths[g]] += counts[g];
    std::vector<std::uint32_t> distinct, next_to;
    std::vector<std::uint64_t> following;
    for (const auto& [length, total] : totals) {
        next_to.push_back(static_cast<std::uint32_t>(distinct.empty() ? 0 : following.back() + totals[distinct.back()]));
        following.push_back(next_to.back());
        distinct.push_back(length);
    }
    std::vector<std::size_t> expected(plain.sequences.size());
    std::iota(expected.begin(), expected.end(), 0U);
    std::stable_sort(expected.begin(), expected.end(), [&](std::size_t one, std::size_t other) {
        return plain.sequences[one].size() < plain.sequences[other].size();
    });
    for (std::size_t run = 0; run < runs.size(); ++run) {
        std::vector<std::uint32_t> local(blocks[run].second.lengths.size());
        index::read_at(order, local.data(), local.size() * 4, subject_at[run] * 4);
        for (std::uint32_t& i : local) i -= static_cast<std::uint32_t>(subject_at[run]);
        const auto found = index::run_positions(runs[run], local, view<const std::uint32_t>(distinct),
                                                view<std::uint64_t>(following));
        positions.insert(positions.end(), found.begin(), found.end());
    }
    for (std::size_t p = 0; p < expected.size(); ++p) REQUIRE(positions[expected[p]] == p, "position %zu", p);
    const index::Cursors cursors{view<const std::uint32_t>(lengths), view<std::uint32_t>(counts), view<std::uint64_t>(next),
                                 view<const std::uint64_t>(stops),   view<std::uint64_t>(residue_at),
                                 view<std::uint64_t>(subject_at)};
    auto pieces = index::take(cursors, view<const std::uint32_t>(distinct), view<std::uint32_t>(next_to), UINT64_MAX);
    const index::PieceViews views{view<const std::uint32_t>(pieces.lengths), view<const std::uint32_t>(pieces.counts),
                                  view<const std::uint32_t>(pieces.to), view<const std::uint64_t>(pieces.residues),
                                  view<const std::uint64_t>(pieces.subjects)};
    const std::uint8_t fill = bytes.byte();
    const index::StoredBlock block = index::gather_residues({residues}, views, 1000, fill);
    const std::vector<std::uint32_t> indices = index::gather_values(order, views);
    Text stored;
    for (std::size_t p = 0; p < expected.size(); ++p) {
        REQUIRE(indices[p] == expected[p] && block.starts[p] == 1000 + stored.size(), "subject %zu", p);
        for (const char letter : plain.sequences[expected[p]]) stored.push_back(static_cast<std::uint8_t>(letter - 'A'));
        stored.resize(index::room(stored.size()), fill);
    }
    REQUIRE(stored == block.residues, "other residues");
    close(residues);
    close(order);
}

void find_repeats(const std::vector<std::pair<Text, index::Records>>& blocks, const Plain& plain) {
    const int spool = file(), headers = file(), ends = file();
    std::vector<std::array<std::uint32_t, index::kBuckets>> counts;
    std::uint64_t n = 0, header_bytes = 0;
    for (const auto& block : blocks) {
        std::vector<std::uint64_t> block_ends = block.second.header_ends;
        std::vector<std::uint8_t> kept;
        counts.push_back(index::write_identifiers(block.second.headers.data(), view<const std::uint64_t>(block_ends),
                                                  view<const std::uint8_t>(kept), static_cast<std::uint32_t>(n), spool, n));
        index::write_at(headers, block.second.headers.data(), block.second.headers.size(), header_bytes);
        for (std::uint64_t& end : block_ends) end += header_bytes;
        index::write_at(ends, block_ends.data(), block_ends.size() * 8, n * 8);
        n += block_ends.size();
        header_bytes += block.second.headers.size();
    }
    std::uint64_t n_found = 0, first = UINT64_MAX;
    for (std::size_t bucket = 0; bucket < index::kBuckets; ++bucket) {
        std::vector<std::uint64_t> offsets;
        std::vector<std::uint32_t> sizes;
        std::uint64_t at = 0;
        for (const auto& of_run : counts) {
            offsets.push_back(at + std::accumulate(of_run.begin(), of_run.begin() + static_cast<std::ptrdiff_t>(bucket), 0U));
            sizes.push_back(of_run[bucket]);
            at += std::accumulate(of_run.begin(), of_run.end(), 0U);
        }
        const index::Repeats found = index::find_repeats(spool, view<const std::uint64_t>(offsets),
                                                         view<const std::uint32_t>(sizes), 0, {{0, headers, ends}});
        n_found += found.n;
        first = std::min(first, found.first);
    }
    std::set<std::string> known;
    std::uint64_t n_expected = 0, first_expected = UINT64_MAX;
    for (std::size_t i = 0; i < plain.headers.size(); ++i) {
        const std::string& header = plain.headers[i];
        const std::size_t begin = header.find_first_not_of(" \t\n\v\f\r");
        const std::size_t end = begin == std::string::npos ? begin : header.find_first_of(" \t\n\v\f\r", begin);
        const std::string word = begin == std::string::npos ? "" : header.substr(begin, end - begin);
        if (!known.insert(word).second) {
            ++n_expected;
            first_expected = std::min<std::uint64_t>(first_expected, i);
        }
    }
    REQUIRE(n_found == n_expected && first == first_expected, "%zu repeats", static_cast<std::size_t>(n_found));
    close(spool);
    close(headers);
    close(ends);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes bytes{data, size};
    static const Text encode = encode_table();
    static const char kUsual[] = ">>>>ABCDABCDAB\n\n\n\n\r \t@+xy";
    const bool is_fastq = bytes.byte() % 4 == 0;
    Text text;
    for (std::size_t n = bytes.byte(); n > 0; --n) {
        const std::uint8_t kind = bytes.byte();
        if (kind < 8) {
            const std::string record = is_fastq ? "@r x\nABCD\n+\n@+>#\n" : ">a\nAB\nCD\n>a b\nD\n";
            text.insert(text.end(), record.begin(), record.end());
        } else {
            text.push_back(kind == 255 ? bytes.byte() : static_cast<std::uint8_t>(kUsual[kind % (sizeof(kUsual) - 1)]));
        }
    }
    Text copy = text;
    if (is_fastq) {
        Text skipped = text;
        index::read_fastq(skipped.data(), skipped.size(), encode.data(), true);
        const index::Records records = index::read_fastq(copy.data(), copy.size(), encode.data(), false);
        const std::size_t whole = index::whole_fastq(text.data(), text.size());
        REQUIRE(whole <= text.size(), "a cut behind the end");
        if (!records.is_regular) return 0;
        const Plain plain = plain_of(copy, records);
        Text begin(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(whole));
        const index::Records first = index::read_fastq(begin.data(), begin.size(), encode.data(), false);
        const Plain part = plain_of(begin, first);
        REQUIRE(first.is_regular && part.headers.size() + 1 >= plain.headers.size(), "a cut within a record");
        return 0;
    }
    const Plain plain = plain_fasta(text);
    skip_records(text, encode, plain);
    const index::Records records = index::read_fasta(copy.data(), copy.size(), encode.data(), false);
    REQUIRE(records.is_regular == plain.is_regular, "regular: %d", records.is_regular);
    if (!records.is_regular || plain.headers.empty()) return 0;
    const Plain found = plain_of(copy, records);
    REQUIRE(found.headers == plain.headers && found.sequences == plain.sequences, "other records");
    const auto cut = static_cast<std::ptrdiff_t>(index::whole_fasta(text.data(), text.size()));
    std::vector<std::pair<Text, index::Records>> blocks;
    std::vector<std::string> headers;
    for (Text part : {Text(text.begin(), text.begin() + cut), Text(text.begin() + cut, text.end())}) {
        if (part.empty()) continue;
        index::Records of_part = index::read_fasta(part.data(), part.size(), encode.data(), false);
        const Plain read = plain_of(part, of_part);
        REQUIRE(of_part.is_regular, "a cut within a record");
        headers.insert(headers.end(), read.headers.begin(), read.headers.end());
        part.resize(of_part.n_residues);
        if (!of_part.lengths.empty()) blocks.emplace_back(std::move(part), std::move(of_part));
    }
    REQUIRE(headers == plain.headers, "other records in blocks");
    sort_by_length(blocks, plain, bytes);
    find_repeats(blocks, plain);
    return 0;
}
