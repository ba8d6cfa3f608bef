// The choice of the kernels for a processor and for queries: by instruction set, and by what this processor executes on
// which port (lanes.hpp). Declared in search.hpp.

#include <algorithm>

#include "common/instruction_sets.hpp"
#include "score/search.hpp"

namespace swsearch::score {

SWSEARCH_DEFINE_KERNELS_OF

bool fits_wrapping(const Query& query) {
    const int8_t* const end = query.table + static_cast<ptrdiff_t>(query.n_rows) * kCodes;
    return query.open + 2 * query.extend <= kWrappingRoom / 2 &&
           std::all_of(query.table, end, [](int8_t score) { return score <= kWrappingHighest; });
}

const Kernels& fastest_kernels_of(const std::string& instruction_set, const std::vector<Query>& queries) {
    const Kernels& kernels = kernels_of(instruction_set);
#if defined(__x86_64__)
    // Intel's processors execute saturating operations and maxima of 512 bits on one port, AMD's on two and four. From
    // Skylake on they have one port more for additions that wrap.
    if (__builtin_cpu_is("intel")) {
        const bool two_ports = __builtin_cpu_is("haswell") || __builtin_cpu_is("broadwell");
        if (kernels.wrapping != nullptr && !two_ports && std::all_of(queries.begin(), queries.end(), fits_wrapping)) {
            return *kernels.wrapping;
        }
        if (kernels.one_port != nullptr) {
            return *kernels.one_port;
        }
    }
#endif
    return kernels;
}

}  // namespace swsearch::score
