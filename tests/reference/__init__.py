"""Float64 NumPy reference of the vehicle, written from the specification and independent of the Warp kernels."""
