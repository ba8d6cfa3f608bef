// The formation of groups of queries: their score tables are merged, with equal rows stored once.

#include "score/group.hpp"

#include <cstring>

namespace swsearch::score {

namespace {

// The index of a row in a table, or the table's number of rows if the row is new.
int32_t find_row(const std::vector<int8_t>& table, const int8_t* row) {
    size_t first = 0;
    while (first < table.size() && std::memcmp(table.data() + first, row, kCodes) != 0) {
        first += kCodes;
    }
    return static_cast<int32_t>(first / kCodes);
}

// Adds the rows of the query's table that `table` lacks. Returns the index of each of the query's rows in it.
std::vector<int32_t> join_tables(std::vector<int8_t>& table, const Query& query) {
    std::vector<int32_t> indices;
    for (int32_t i = 0; i < query.n_rows; ++i) {
        const int8_t* row = query.table + static_cast<ptrdiff_t>(i) * kCodes;
        indices.push_back(find_row(table, row));
        if (indices.back() * size_t{kCodes} == table.size()) {
            table.insert(table.end(), row, row + kCodes);
        }
    }
    return indices;
}

}  // namespace

Group::Group(uint32_t number, const Query& query, int first_round)
    : numbers{number}, queries{query}, n_rows(query.length), round(first_round) {}

bool Group::takes(const Query& query, int first_round) const {
    const Query& front = queries.front();
    if (first_round != round || n_rows + query.length > kBlockRows || query.n_rows > kProfileRows ||
        front.n_rows > kProfileRows || front.open != query.open || front.extend != query.extend) {
        return false;
    }
    std::vector<int8_t> joined = table_;
    join_tables(joined, front);
    join_tables(joined, query);
    return joined.size() <= size_t{kProfileRows} * kCodes;
}

void Group::add(uint32_t number, const Query& query) {
    if (rows_.empty()) {
        add_rows(queries.front());
    }
    numbers.push_back(number);
    queries.push_back(query);
    n_rows += query.length;
    add_rows(query);
    for (size_t q = 0; q < queries.size(); ++q) {
        queries[q].rows = rows_[q].data();
        queries[q].table = table_.data();
        queries[q].n_rows = static_cast<int32_t>(table_.size() / kCodes);
    }
}

void Group::add_rows(const Query& query) {
    const std::vector<int32_t> indices = join_tables(table_, query);
    std::vector<int32_t>& rows = rows_.emplace_back();
    for (int32_t i = 0; i < query.length; ++i) {
        rows.push_back(indices[static_cast<size_t>(query.rows[i])]);
    }
}

std::vector<Group> group_queries(const std::vector<Query>& queries, const std::vector<int>& first_rounds) {
    std::vector<Group> groups;
    for (uint32_t q = 0; q < queries.size(); ++q) {
        if (!groups.empty() && groups.back().takes(queries[q], first_rounds[q])) {
            groups.back().add(q, queries[q]);
        } else {
            groups.emplace_back(q, queries[q], first_rounds[q]);
        }
    }
    return groups;
}

}  // namespace swsearch::score
