"""Contact manifold of two boxes: separating axes, then face clipping or the crossing of two edges.

Two boxes are apart if and only if they are apart along one of 15 directions: the face normals of each (3 + 3) and the
cross products of an edge of one and an edge of the other (9). If they overlap along all of them, the direction of least
overlap is the contact normal (Gottschalk et al. 1996). A face normal gives the part of the other box's facing side that
lies over that face, at most 8 points; an edge direction gives one point.
"""

import warp as wp

wp.set_module_options({"enable_backward": False, "fuse_fp": False})

vec8 = wp.types.vector(length=8, dtype=float)
mat83 = wp.types.matrix(shape=(8, 3), dtype=float)

# Loops run over range(int(n)): Warp unrolls literal ranges, which multiplies code and compile time.
THREE = wp.constant(3)
FOUR = wp.constant(4)

# An edge direction is taken when its overlap is less than this share of the least face overlap. Nearly aligned boxes
# overlap almost equally along a face normal and the edge directions beside it, and a face holds a box in more points.
EDGE_SHARE = wp.constant(0.98)

# Error of an overlap along an edge direction before normalization, per metre of box: two float32 units of the last
# place.
ROUND_OFF = wp.constant(2.0e-7)

# A face is grown by this share for clipping, so that sides in one plane do not fall in or out by round-off.
FACE_GROWTH = wp.constant(1.0e-5)


@wp.struct
class BoxManifold:
    """Contact points of two boxes a and b with one normal.

    Attributes:
        normal: Unit vector from a to b.
        count: Number of points, 0 when the boxes do not overlap.
        separation: Separation along the normal per point, negative [m].
        points: Middle between the two surfaces, from the centre of a in world axes [m].
    """

    normal: wp.vec3
    count: int
    separation: vec8
    points: mat83


@wp.func
def next_axis(i: int) -> int:
    """0, 1, 2 → 1, 2, 0."""
    return wp.where(i == 2, 0, i + 1)


@wp.func
def sign_of(x: float) -> float:
    """1 for x >= 0, else -1."""
    return wp.where(x < 0.0, -1.0, 1.0)


@wp.func
def least_overlap(along_a: wp.vec3, along_b: wp.vec3, turn: wp.mat33, half_a: wp.vec3, half_b: wp.vec3):
    """Direction of least overlap and the separation along it; -1 when the boxes are apart.

    Directions count 0-2 for the faces of a, 3-5 for those of b, 6 + 3 i + j for edge i of a with edge j of b.
    ``along_a`` and ``along_b`` are b's centre from a's in the axes of each; ``turn`` takes b's axes to a's. The tests
    on faces ask for overlap, not for a gap, so that NaN counts as apart.
    """
    size = wp.matrix_from_rows(wp.abs(turn[0]), wp.abs(turn[1]), wp.abs(turn[2]))
    of_a = wp.abs(along_a) - half_a - size * half_b
    if not (of_a[0] < 0.0 and of_a[1] < 0.0 and of_a[2] < 0.0):
        return -1, 0.0
    of_b = wp.abs(along_b) - half_b - half_a * size
    if not (of_b[0] < 0.0 and of_b[1] < 0.0 and of_b[2] < 0.0):
        return -1, 0.0
    axis = int(wp.argmax(of_a))
    best = wp.max(of_a)
    if wp.max(of_b) > best:
        axis = 3 + int(wp.argmax(of_b))
        best = wp.max(of_b)

    error = ROUND_OFF * (half_a[0] + half_a[1] + half_a[2] + half_b[0] + half_b[1] + half_b[2])
    edge_best = EDGE_SHARE * best
    for i in range(int(THREE)):
        i1 = next_axis(i)
        i2 = next_axis(i1)
        for j in range(int(THREE)):
            j1 = next_axis(j)
            j2 = next_axis(j1)
            # The cross product has length sin(angle) between the edges; near parallel ones never beat the error.
            sine = wp.sqrt(turn[i1, j] * turn[i1, j] + turn[i2, j] * turn[i2, j])
            reach_a = half_a[i1] * size[i2, j] + half_a[i2] * size[i1, j]
            reach_b = half_b[j1] * size[i, j2] + half_b[j2] * size[i, j1]
            apart = wp.abs(along_a[i2] * turn[i1, j] - along_a[i1] * turn[i2, j])
            scaled = apart - reach_a - reach_b
            if scaled > error:
                return -1, 0.0
            if scaled - error > edge_best * sine:
                best = wp.min(scaled / sine, 0.0)
                edge_best = (scaled - error) / sine
                axis = 6 + 3 * i + j
    return axis, best


@wp.func
def clip_to_strip(span: wp.vec2, start: float, step: float, half: float) -> wp.vec2:
    """Part of the parameters ``span`` for which |start + x step| <= half; empty is (1, 0)."""
    if wp.abs(step) < 1.0e-12:
        if wp.abs(start) > half:
            return wp.vec2(1.0, 0.0)
        return span
    x0 = (-half - start) / step
    x1 = (half - start) / step
    return wp.vec2(wp.max(span[0], wp.min(x0, x1)), wp.min(span[1], wp.max(x0, x1)))


@wp.func
def face_manifold(k: int, apart: wp.vec3, turn: wp.mat33, half: wp.vec3, other: wp.vec3) -> BoxManifold:
    """Points of the other box's facing side over face k of a box; in that box's axes, from its centre.

    The side projects to a parallelogram on the face. The corners of their intersection are the ends of its edges
    clipped to the face, and the face's corners inside it.

    Args:
        k: Axis of the face.
        apart: The other's centre in the box's axes.
        turn: Matrix from the other's axes to the box's.
        half: Half extents of the box.
        other: Half extents of the other box.
    """
    p = next_axis(k)
    q = next_axis(p)
    side = sign_of(apart[k])
    m = int(0)
    if wp.abs(turn[k, 1]) > wp.abs(turn[k, m]):
        m = int(1)
    if wp.abs(turn[k, 2]) > wp.abs(turn[k, m]):
        m = int(2)
    m1 = next_axis(m)
    m2 = next_axis(m1)

    # (along p, along q, height over the face): middle of the facing side and its half edges
    toward = -sign_of(side * turn[k, m]) * other[m]
    middle = wp.vec3(
        apart[p] + toward * turn[p, m],
        apart[q] + toward * turn[q, m],
        side * (apart[k] + toward * turn[k, m]) - half[k],
    )
    u = other[m1] * wp.vec3(turn[p, m1], turn[q, m1], side * turn[k, m1])
    v = other[m2] * wp.vec3(turn[p, m2], turn[q, m2], side * turn[k, m2])
    area = u[0] * v[1] - u[1] * v[0]
    half_p = half[p] * (1.0 + FACE_GROWTH)
    half_q = half[q] * (1.0 + FACE_GROWTH)

    out = BoxManifold()
    start = middle + u + v
    edge = -2.0 * u
    following = -2.0 * v
    count = int(0)
    deepest = start
    for e in range(int(FOUR)):
        if start[2] < deepest[2]:
            deepest = start
        span = clip_to_strip(wp.vec2(0.0, 1.0), start[0], edge[0], half_p)
        span = clip_to_strip(span, start[1], edge[1], half_q)
        corner_x = wp.where(e < 2, half_p, -half_p)
        corner_y = wp.where(e == 0 or e == 3, half_q, -half_q)
        x = corner_x - middle[0]
        y = corner_y - middle[1]
        along_u = (x * v[1] - y * v[0]) / area
        along_v = (u[0] * y - u[1] * x) / area
        for candidate in range(int(THREE)):
            point = start + span[0] * edge
            wanted = span[0] <= span[1]
            if candidate == 1:
                # an edge that ends inside ends where the next one starts
                point = start + span[1] * edge
                wanted = span[0] < span[1] and span[1] < 1.0
            if candidate == 2:
                point = wp.vec3(corner_x, corner_y, middle[2] + along_u * u[2] + along_v * v[2])
                wanted = wp.abs(along_u) <= 1.0 and wp.abs(along_v) <= 1.0
            if wanted and point[2] < 0.0 and count < 8:
                out.separation[count] = point[2]
                out.points[count, p] = point[0]
                out.points[count, q] = point[1]
                out.points[count, k] = side * (half[k] + 0.5 * point[2])
                count += 1
        start += edge
        turned = -edge
        edge = following
        following = turned
    if count == 0:
        # The deepest corner can lie beside the face when another direction overlaps almost as little.
        out.separation[0] = wp.min(deepest[2], 0.0)
        out.points[0, p] = wp.clamp(deepest[0], -half_p, half_p)
        out.points[0, q] = wp.clamp(deepest[1], -half_q, half_q)
        out.points[0, k] = side * (half[k] + 0.5 * deepest[2])
        count = 1
    out.count = count
    out.normal[k] = side
    return out


@wp.func
def edge_manifold(
    i: int, j: int, separation: float, apart: wp.vec3, turn: wp.mat33, half_a: wp.vec3, half_b: wp.vec3
) -> BoxManifold:
    """Crossing of edge i of a with edge j of b, at the closest points of the two; in a's axes, from a's centre."""
    i1 = next_axis(i)
    i2 = next_axis(i1)
    j1 = next_axis(j)
    j2 = next_axis(j1)
    normal = wp.vec3()
    normal[i1] = -turn[i2, j]
    normal[i2] = turn[i1, j]
    square = wp.dot(normal, normal)
    normal *= sign_of(wp.dot(normal, apart)) / wp.sqrt(square)
    seen_by_b = wp.transpose(turn) * normal

    middle_a = wp.vec3()
    middle_a[i1] = sign_of(normal[i1]) * half_a[i1]
    middle_a[i2] = sign_of(normal[i2]) * half_a[i2]
    middle_b = wp.vec3()
    middle_b[j1] = -sign_of(seen_by_b[j1]) * half_b[j1]
    middle_b[j2] = -sign_of(seen_by_b[j2]) * half_b[j2]
    middle_b = apart + turn * middle_b

    # Lines middle_a + x e_i and middle_b + y c_j: the closest points have (between + y c_j - x e_i) square to both.
    edge_b = wp.vec3(turn[0, j], turn[1, j], turn[2, j])
    between = middle_b - middle_a
    along_a = between[i]
    along_b = wp.dot(between, edge_b)
    x = wp.clamp((along_a - edge_b[i] * along_b) / square, -half_a[i], half_a[i])
    y = wp.clamp((edge_b[i] * along_a - along_b) / square, -half_b[j], half_b[j])
    middle_a[i] = x
    point = 0.5 * (middle_a + middle_b + y * edge_b)

    out = BoxManifold()
    out.normal = normal
    out.count = 1
    out.separation[0] = separation
    for r in range(int(THREE)):
        out.points[0, r] = point[r]
    return out


@wp.func
def collide_boxes(
    position_a: wp.vec3,
    rotation_a: wp.mat33,
    half_a: wp.vec3,
    position_b: wp.vec3,
    rotation_b: wp.mat33,
    half_b: wp.vec3,
) -> BoxManifold:
    """Contact points of two boxes.

    Args:
        position_a: Centre of a [m].
        rotation_a: Matrix from a's axes to the world's.
        half_a: Half extents of a, positive [m].
        position_b: Centre of b [m].
        rotation_b: Matrix from b's axes to the world's.
        half_b: Half extents of b, positive [m].

    Returns:
        The manifold; empty when the boxes are apart or just touch, and when a pose is not finite or an extent NaN.
    """
    offset = position_b - position_a
    along_a = wp.transpose(rotation_a) * offset
    along_b = wp.transpose(rotation_b) * offset
    turn = wp.transpose(rotation_a) * rotation_b
    axis, separation = least_overlap(along_a, along_b, turn, half_a, half_b)
    out = BoxManifold()
    if axis < 0:
        return out
    if axis >= 6:
        i = (axis - 6) // 3
        out = edge_manifold(i, axis - 6 - 3 * i, separation, along_a, turn, half_a, half_b)
        axis = int(0)
    elif axis < 3:
        out = face_manifold(axis, along_a, turn, half_a, half_b)
    else:
        out = face_manifold(axis - 3, -along_b, wp.transpose(turn), half_b, half_a)

    to_world = rotation_a
    shift = wp.vec3()
    facing = float(1.0)
    if axis >= 3:
        to_world = rotation_b
        shift = offset
        facing = float(-1.0)
    out.normal = facing * (to_world * out.normal)
    for k in range(out.count):
        point = shift + to_world * wp.vec3(out.points[k, 0], out.points[k, 1], out.points[k, 2])
        out.points[k, 0] = point[0]
        out.points[k, 1] = point[1]
        out.points[k, 2] = point[2]
    return out
