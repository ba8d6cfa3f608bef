// A main function for fuzz targets without libFuzzer: it calls the target with bytes of a seeded generator or of files.
// Arguments: the number of inputs and the seed; or files to repeat. The input that ends the program is printed in
// hexadecimal.

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "plain_gotoh.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" void __sanitizer_set_death_callback(void (*callback)());

namespace {

const std::vector<std::uint8_t>* at_hand = nullptr;

void tell() {
    if (at_hand == nullptr) return;
    std::fprintf(stderr, "input: ");
    for (const std::uint8_t byte : *at_hand) std::fprintf(stderr, "%02x", byte);
    std::fprintf(stderr, "\n");
    at_hand = nullptr;
}

// The bytes are copied to a heap block of exactly their size, so that a read beyond it is detected.
void call(const std::vector<std::uint8_t>& bytes) {
    std::uint8_t* const exact = static_cast<std::uint8_t*>(std::malloc(bytes.size() + (bytes.empty() ? 1 : 0)));
    if (!bytes.empty()) std::memcpy(exact, bytes.data(), bytes.size());
    at_hand = &bytes;
    LLVMFuzzerTestOneInput(exact, bytes.size());
    at_hand = nullptr;
    std::free(exact);
}

}  // namespace

int main(int count, char** arguments) {
    std::signal(SIGABRT, [](int) { tell(); });
    __sanitizer_set_death_callback(tell);
    if (count == 3 && std::atoi(arguments[1]) > 0) {
        const int n = std::atoi(arguments[1]);
        for (int i = 0; i < n; ++i) {
            Random random{0x9E3779B97F4A7C15u * (2 * std::strtoull(arguments[2], nullptr, 10) + 1) + static_cast<unsigned>(i)};
            for (int warm = 0; warm < 8; ++warm) random.below(2);
            std::vector<std::uint8_t> bytes(random.below(random.below(4) == 0 ? 3000 : 300));
            const std::uint32_t kinds = random.below(3) == 0 ? 4 : 256;  // few letters give long alignments
            for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random.below(kinds));
            for (std::size_t k = 0; k < std::min<std::size_t>(bytes.size(), 16); ++k) {
                bytes[k] = static_cast<std::uint8_t>(random.below(256));
            }
            call(bytes);
        }
        std::printf("%d inputs\n", n);
        return 0;
    }
    for (int i = 1; i < count; ++i) {
        std::ifstream file(arguments[i], std::ios::binary);
        call({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
    }
    return 0;
}
