// The intrinsics of the emulation, element by element of arrays, for test_emulation.py.

#include "cuda_emulation.h"

extern "C" void apply(int which, int n, const unsigned* a, const unsigned* b, const unsigned* c, unsigned* result) {
    using namespace swsearch;
    for (int i = 0; i < n; ++i) {
        switch (which) {
            case 0: result[i] = half2_add(a[i], b[i]); break;
            case 1: result[i] = half2_max(a[i], b[i]); break;
            case 2: result[i] = half2_fma(a[i], b[i], c[i]); break;
            case 3: result[i] = half2_fma_saturated(a[i], b[i], c[i]); break;
            case 4: result[i] = __vadd2(a[i], b[i]); break;
            case 5: result[i] = __vmaxs2(a[i], b[i]); break;
            case 6: result[i] = __vminu2(a[i], b[i]); break;
            case 7: result[i] = add_low_products(a[i], b[i], c[i]); break;
            case 8: result[i] = add_high_products(a[i], b[i], c[i]); break;
        }
    }
}
