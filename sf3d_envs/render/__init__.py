"""Pictures of one world: headless camera, video files, browser viewer and result plots.

Nothing here touches a simulator: a scene is built from a terrain variant and vehicle parameters, and is given poses.
"""
