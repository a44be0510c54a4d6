"""Functions over the four wheels of a vehicle as lanes of one vector register.

Written as scalar code, a compiler finds little of the parallelism between the wheels. A lane function is therefore a
native one whose body is compiled twice from one text: over 4-wide vectors for a CPU, lane by lane for CUDA. Every
operation is a lane-wise IEEE operation, so both give the same bits on one device.

In a body, ``at(a)`` reads a ``vec4`` argument, ``put(i, x)`` writes row i of the result, scalars spread over the
lanes, and a comparison is a mask for ``pick(mask, if_true, if_false)`` and ``any(mask)``. ``root``, ``size`` (absolute
value), ``most``, ``least`` and ``down`` (floor) act per lane; ``truncate(x)`` gives ``whole`` numbers and
``lookup(pointer, i)`` reads a table at them.
"""

import re

_VECTOR = """
    typedef float lanes __attribute__((ext_vector_type(4)));
    typedef int mask __attribute__((ext_vector_type(4)));
    struct ops {
        typedef mask whole;
        static inline whole truncate(lanes a) { return __builtin_convertvector(a, whole); }
        static inline lanes lookup(const wp::float32* table, whole i) {
            return lanes{table[i[0]], table[i[1]], table[i[2]], table[i[3]]};
        }
        static inline lanes down(lanes a) { return __builtin_elementwise_floor(a); }
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
        typedef int whole;
        static CUDA_CALLABLE inline whole truncate(lanes a) { return (int)a; }
        static CUDA_CALLABLE inline lanes lookup(const wp::float32* table, whole i) { return table[i]; }
        static CUDA_CALLABLE inline lanes down(lanes a) { return floorf(a); }
        static CUDA_CALLABLE inline lanes pick(mask m, lanes a, lanes b) { return m ? a : b; }
        static CUDA_CALLABLE inline bool some(mask m) { return m; }
        static CUDA_CALLABLE inline lanes root(lanes a) { return sqrtf(a); }
        static CUDA_CALLABLE inline lanes size(lanes a) { return fabsf(a); }
        static CUDA_CALLABLE inline lanes most(lanes a, lanes b) { return a > b ? a : b; }
        static CUDA_CALLABLE inline lanes least(lanes a, lanes b) { return a < b ? a : b; }
    };
"""
_EACH = """
    #define at(a) a[lane_]
    #define put(i, x) result.data[i][lane_] = (x)
"""
_ONE = """
    #define at(a) a
    #define put(i, x) result[i] = (x)
"""
_NAMES = """
    #define pick ops::pick
    #define any ops::some
    #define root ops::root
    #define size ops::size
    #define most ops::most
    #define least ops::least
    #define whole ops::whole
    #define truncate ops::truncate
    #define lookup ops::lookup
    #define down ops::down
"""
_MACROS = tuple(re.findall(r"#define (\w+)", _VECTOR + _NAMES))
_FORGET = "".join(f"\n    #undef {name}" for name in _MACROS)


def lane_code(body: str, *, rows: int, form: str = "lanes") -> str:
    """Snippet for ``wp.func_native`` from a body over lanes.

    Args:
        body: C++ over lanes, as the module's docstring says.
        rows: Rows of the result.
        form: "lanes": arguments are ``vec4`` and the result a matrix [rows, 4]; "one": arguments are floats and the
            result a vector of ``rows``; "one by one": as "lanes", but lane by lane on a CPU too, for tests.
    """
    if form == "one":
        one = f"{{{_SCALAR}{_ONE}{_NAMES}{body}{_FORGET}\n    }}"
        return f"wp::vec_t<{rows}, wp::float32> result;\n{one}\nreturn result;"
    vector = f"{{{_VECTOR}{_NAMES}{body}{_FORGET}\n    }}"
    loop = f"for (int lane_ = 0; lane_ < 4; ++lane_) {{\n{body}\n    }}"
    lane_by_lane = f"{{{_SCALAR}{_EACH}{_NAMES}{loop}{_FORGET}\n    }}"
    choice = f"\n#if defined(__CUDA_ARCH__)\n{lane_by_lane}\n#else\n{vector}\n#endif\n"
    if form == "one by one":
        choice = lane_by_lane
    return f"wp::mat_t<{rows}, 4, wp::float32> result;\n{choice}\nreturn result;"
