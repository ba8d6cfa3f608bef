// The kernels for SSE4.1.

#include "score/isa_sse.hpp"
#include "score/kernel_set.hpp"

namespace swsearch::score {
extern const Kernels kernels_sse41;
const Kernels kernels_sse41 = kernel_set<Sse41, 1>("sse41");
}  // namespace swsearch::score
