// The instruction sets for which the kernels are built, and those among them that this processor and operating system
// can run. find_instruction_set maps a name to an index.

#pragma once

#include <cstddef>
#include <string>
#include <vector>

// Applies a macro to the name of each instruction set that is built for this architecture, best first.
#if defined(__x86_64__) || defined(_M_X64)
#define SWSEARCH_FOR_EACH_INSTRUCTION_SET(apply) \
    apply(avx512vbmi) apply(avx512bw) apply(avx2) apply(sse41) apply(scalar)
#elif defined(__aarch64__)
#define SWSEARCH_FOR_EACH_INSTRUCTION_SET(apply) apply(neon) apply(scalar)
#else
#define SWSEARCH_FOR_EACH_INSTRUCTION_SET(apply) apply(scalar)
#endif

namespace swsearch {

struct InstructionSet {
    std::string name;
    bool usable;  // on this machine
};

// All instruction sets that are built, best first. The last one, scalar, is usable on every machine.
const std::vector<InstructionSet>& instruction_sets();

// The index of the instruction set with this name ("auto" is the best usable one). Throws std::invalid_argument if
// there is none, or if it cannot run on this machine.
std::size_t find_instruction_set(const std::string& name);

}  // namespace swsearch

// For the namespace of a kernel, which has a type Kernels and a constant kernels_NAME of it for each instruction set:
// defines kernels_of(name), those of the instruction set that find_instruction_set finds.
#define SWSEARCH_DECLARE_KERNELS(name) extern const Kernels kernels_##name;
#define SWSEARCH_ADDRESS_OF_KERNELS(name) &kernels_##name,
#define SWSEARCH_DEFINE_KERNELS_OF                                                                            \
    SWSEARCH_FOR_EACH_INSTRUCTION_SET(SWSEARCH_DECLARE_KERNELS)                                               \
    const Kernels& kernels_of(const std::string& name) {                                                      \
        static const Kernels* const all[] = {SWSEARCH_FOR_EACH_INSTRUCTION_SET(SWSEARCH_ADDRESS_OF_KERNELS)}; \
        return *all[find_instruction_set(name)];                                                              \
    }
