// Which instruction sets are built, and which of them this processor and operating system can run.

#include "score/search.hpp"

namespace swsearch::score {

std::vector<InstructionSet> instruction_sets() {
    std::vector<InstructionSet> sets;
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool avx512bw = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    sets.push_back({&kernels_avx512vbmi, avx512bw && __builtin_cpu_supports("avx512vbmi")});
    sets.push_back({&kernels_avx512bw, avx512bw});
    sets.push_back({&kernels_avx2, __builtin_cpu_supports("avx2") != 0});
    sets.push_back({&kernels_sse41, __builtin_cpu_supports("sse4.1") != 0});
#elif defined(__aarch64__)
    sets.push_back({&kernels_neon, true});
#endif
    sets.push_back({&kernels_scalar, true});
    return sets;
}

}  // namespace swsearch::score
