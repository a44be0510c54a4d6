"""Physics of the vehicle, the road and contact, against numbers worked out outside the simulator."""
