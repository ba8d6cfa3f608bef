// The list of the instruction sets that are built, with the tests whether this processor can run them.

#include "common/instruction_sets.hpp"

#include <stdexcept>

namespace swsearch {

namespace {

bool usable(const std::string& name) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool avx512bw = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    if (name == "avx512vbmi") {
        return avx512bw && __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni");
    }
    if (name == "avx512bw") {
        return avx512bw;
    }
    if (name == "avx2") {
        return __builtin_cpu_supports("avx2");
    }
    if (name == "sse41") {
        return __builtin_cpu_supports("sse4.1");
    }
#endif
    return name == "scalar" || name == "neon";  // every AArch64 processor has NEON
}

}  // namespace

const std::vector<InstructionSet>& instruction_sets() {
#define SWSEARCH_ENTRY(name) {#name, usable(#name)},
    static const std::vector<InstructionSet> sets{SWSEARCH_FOR_EACH_INSTRUCTION_SET(SWSEARCH_ENTRY)};
#undef SWSEARCH_ENTRY
    return sets;
}

std::size_t find_instruction_set(const std::string& name) {
    const std::vector<InstructionSet>& sets = instruction_sets();
    std::string known;
    for (std::size_t i = 0; i < sets.size(); ++i) {
        if (sets[i].usable && (name == "auto" || name == sets[i].name)) {
            return i;
        }
        if (name == sets[i].name) {
            throw std::invalid_argument("this processor cannot run instruction set " + name + "; choose auto");
        }
        known += (known.empty() ? "" : ", ") + sets[i].name;
    }
    throw std::invalid_argument("no instruction set is named " + name + "; choose auto, " + known);
}

}  // namespace swsearch
