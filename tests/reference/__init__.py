"""The float64 reference of `sf3d_envs.verification.reference`, which tests and `sf3d verify` share."""
