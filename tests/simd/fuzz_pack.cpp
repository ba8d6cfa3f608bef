// A fuzz target for simd/pack: bytes become a file, ranges of it and their offsets in the output; ranges that end
// beyond the file are refused, and nothing but the output is written.

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "fuzz_bytes.hpp"
#include "pack/gather.hpp"
#include "plain_gotoh.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Bytes bytes{data, size};
    const std::uint8_t fill = bytes.byte();
    const std::size_t n = bytes.below(9);
    std::vector<std::uint64_t> from, to;
    std::vector<std::uint32_t> lengths;
    std::size_t end = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint8_t kind = bytes.byte();
        from.push_back(kind == 255 ? ~std::uint64_t{0} - bytes.byte() : bytes.byte());
        lengths.push_back(bytes.byte() % 70);
        to.push_back(end + bytes.byte() % 20);
        end = to.back() + lengths.back();
    }
    std::vector<std::uint8_t> out(end + bytes.byte() % 20), expected(out.size(), fill);
    const std::vector<std::uint8_t> content(bytes.data, bytes.data + bytes.size);
    bool inside = true;
    for (std::size_t i = 0; i < n; ++i) {
        // An empty range is valid at any offset.
        if (lengths[i] == 0) continue;
        if (from[i] > content.size() || lengths[i] > content.size() - from[i]) {
            inside = false;
            break;
        }
        std::memcpy(expected.data() + to[i], content.data() + from[i], lengths[i]);
    }
    const int file = memfd_create("fuzz", 0);
    REQUIRE(file >= 0 && write(file, content.data(), content.size()) == static_cast<ssize_t>(content.size()), "no file");
    const int failure = swsearch::pack::gather(file, from.data(), lengths.data(), to.data(), n, out.data(), out.size(), fill);
    close(file);
    REQUIRE((failure == 0) == inside, "error %d", failure);
    REQUIRE(failure != 0 || out == expected, "another output");
    return 0;
}
