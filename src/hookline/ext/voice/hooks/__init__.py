"""The hook files that come with Hookline, loaded before anyone else's: `stt.py` and `tts.py`.

Files whose name starts with `_`, like this one, are not hook files.
"""
