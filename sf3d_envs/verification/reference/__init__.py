"""Float64 NumPy reference of the vehicle, written from the specification's equations and independent of the kernels.

It imports nothing of the simulator and must stay so: it is there to disagree with it.
"""
