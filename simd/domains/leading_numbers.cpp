// A reader of decimals, which needs no locale.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

#include "domains/domains.hpp"

namespace swsearch::domains {

namespace {

bool is_space(char byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

// Takes the next word off a line; empty if there is none.
std::string_view take_word(std::string_view& line) {
    const auto begin = std::find_if_not(line.begin(), line.end(), is_space);
    const auto end = std::find_if(begin, line.end(), is_space);
    const std::string_view word =
        line.substr(static_cast<std::size_t>(begin - line.begin()), static_cast<std::size_t>(end - begin));
    line.remove_prefix(static_cast<std::size_t>(end - line.begin()));
    return word;
}

double number_of(std::string_view word, double star) {
    if (word == "*") return star;
    double number = 0.0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    return error == std::errc() && end == word.data() + word.size() && number >= 0.0 ? number : std::nan("");
}

}  // namespace

LeadingNumbers leading_numbers(std::string_view text, std::size_t first, std::size_t step, std::size_t n_columns,
                               std::size_t word, double star) {
    LeadingNumbers found;
    for (std::size_t number = 0; !text.empty(); ++number) {
        const std::size_t end = std::min(text.find('\n'), text.size() - 1);
        std::string_view line = text.substr(0, end + 1);
        text.remove_prefix(end + 1);
        if (number < first || (number - first) % step != 0) continue;
        for (std::size_t column = 0; column < n_columns; ++column) {
            found.values.push_back(number_of(take_word(line), star));
        }
        for (std::size_t place = 0; place < word; ++place) take_word(line);
        const std::string_view letter = take_word(line);
        found.letters.push_back(letter.empty() ? ' ' : letter.front());
    }
    return found;
}

}  // namespace swsearch::domains
