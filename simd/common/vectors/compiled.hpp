// What all vectors have in common: operations that compilers translate to the instructions of their target, because
// they are written with the vector extension of GCC and Clang. vectors.hpp describes each function.

#pragma once

namespace swsearch {
namespace {

// Register::V is the type of a vector.
template <class Register>
struct CompiledVectors {
    using V = typename Register::V;
    template <class T>
    using Mask = V;
    static constexpr int kBytes = sizeof(V);
    template <class T, int kSize = kBytes>
    struct VectorOf {
        typedef T type __attribute__((vector_size(kSize)));  // an alias declaration cannot have this attribute
    };
    template <class T>
    using Of = typename VectorOf<T>::type;

    static V load(const void* from) { return *static_cast<const Unaligned*>(from); }
    static void store(void* to, V a) { *static_cast<Unaligned*>(to) = a; }
    template <class T>
    static V splat(int32_t x) {
        return (V)(Of<T>{} + static_cast<T>(x));
    }
    // Unsigned lanes wrap; the overflow of signed lanes is undefined.
    template <class T>
    static V add(V a, V b) {
        return (V)(as<Unsigned<T>>(a) + as<Unsigned<T>>(b));
    }
    template <class T>
    static V subtract(V a, V b) {
        return (V)(as<Unsigned<T>>(a) - as<Unsigned<T>>(b));
    }
    template <class T>
    static V equal(V a, V b) {
        return (V)(as<T>(a) == as<T>(b));
    }
    template <class T>
    static V greater(V a, V b) {
        return (V)(as<T>(a) > as<T>(b));
    }
    static V exclusive_or(V a, V b) { return a ^ b; }
    template <class Byte>
    static V load_parts(const Byte* const* rows, size_t offset) {
        static_assert(kBytes == 16, "a single part");
        return load(rows[0] + offset);
    }
    static void keep_order(V&, V&) {}  // with 32 registers no order of operations spills

   protected:
    // The same bits as lanes of type T.
    template <class T, class Other>
    static Of<T> as(Other a) {
        return (Of<T>)a;
    }

   private:
    typedef V Unaligned __attribute__((aligned(1), may_alias));
    static uint8_t unsigned_of(int8_t);
    static uint16_t unsigned_of(int16_t);
    static uint32_t unsigned_of(int32_t);
    template <class T>
    using Unsigned = decltype(unsigned_of(T{}));
};

}  // namespace
}  // namespace swsearch
