"""Functions over the four wheels of a vehicle as lanes of one vector register.

Written as scalar code, a compiler finds little of the parallelism between the wheels. A lane function is therefore a
native one whose body is compiled twice from one text: over 4-wide vectors for a CPU, lane by lane for CUDA. Every
operation is a lane-wise IEEE operation, so both give the same bits on one device.

In a body, ``at(a)`` reads a ``vec4`` argument, ``put(i, x)`` writes row i of the result, scalars spread over the
lanes, and a comparison is a mask for ``pick(mask, if_true, if_false)`` and ``any(mask)``.
"""

_VECTOR = """
    typedef float lanes __attribute__((ext_vector_type(4)));
    typedef int mask __attribute__((ext_vector_type(4)));
    struct ops {
        static inline lanes read(const wp::vec_t<4, wp::float32>& a) { return read(a.c); }
        static inline lanes read(const wp::float32 (&a)[4]) { lanes r; __builtin_memcpy(&r, a, 16); return r; }
        static inline lanes pick(mask m, lanes a, lanes b) { return m ? a : b; }
        static inline bool some(mask m) { return (m[0] | m[1] | m[2] | m[3]) != 0; }
        static inline lanes root(lanes a) { return __builtin_elementwise_sqrt(a); }
        static inline lanes size(lanes a) { return __builtin_elementwise_abs(a); }
        static inline lanes most(lanes a, lanes b) { return a > b ? a : b; }
        static inline lanes least(lanes a, lanes b) { return a < b ? a : b; }
    };
    #define at(a) ops::read(a)
    #define put(i, x) do { lanes value_ = (x); __builtin_memcpy(&result.data[i][0], &value_, 16); } while (0)
"""
_SCALAR = """
    typedef float lanes;
    typedef bool mask;
    struct ops {
        static CUDA_CALLABLE inline lanes pick(mask m, lanes a, lanes b) { return m ? a : b; }
        static CUDA_CALLABLE inline bool some(mask m) { return m; }
        static CUDA_CALLABLE inline lanes root(lanes a) { return sqrtf(a); }
        static CUDA_CALLABLE inline lanes size(lanes a) { return fabsf(a); }
        static CUDA_CALLABLE inline lanes most(lanes a, lanes b) { return a > b ? a : b; }
        static CUDA_CALLABLE inline lanes least(lanes a, lanes b) { return a < b ? a : b; }
    };
    #define at(a) a[lane_]
    #define put(i, x) result.data[i][lane_] = (x)
"""
_NAMES = """
    #define pick ops::pick
    #define any ops::some
    #define root ops::root
    #define size ops::size
    #define most ops::most
    #define least ops::least
"""
_FORGET = "".join(f"\n    #undef {name}" for name in ("at", "put", "pick", "any", "root", "size", "most", "least"))


def lane_code(body: str, *, rows: int, scalar: bool | None = None) -> str:
    """Snippet for ``wp.func_native`` whose result is ``rows`` vectors over the wheels, a matrix [rows, 4].

    Args:
        body: C++ over lanes, as the module's docstring says.
        rows: Rows of the result.
        scalar: True compiles the lane-by-lane form on a CPU too (for tests); None by device.
    """
    vector = f"{{{_VECTOR}{_NAMES}{body}{_FORGET}\n    }}"
    lane_by_lane = f"{{{_SCALAR}{_NAMES}for (int lane_ = 0; lane_ < 4; ++lane_) {{\n{body}\n    }}{_FORGET}\n    }}"
    choice = lane_by_lane if scalar else f"\n#if defined(__CUDA_ARCH__)\n{lane_by_lane}\n#else\n{vector}\n#endif\n"
    return f"wp::mat_t<{rows}, 4, wp::float32> result;\n{choice}\nreturn result;"
